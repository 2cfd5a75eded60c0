"""Probes of repeatability: determinism, independence, copies, and seeds that matter."""

from __future__ import annotations

import json
import re

from spade_envs.record import WIN_RETURN
from spade_envs.validation.evidence import Evidence
from spade_envs.validation.finding import Finding, Severity
from spade_envs.validation.replay import Difference
from spade_envs.validation.rollout import Rollout, Turn
from spade_envs.validation.shown import error_evidence, play_evidence, shorten

_RANDOMNESS = (
    "Draw every random number from `rng = random.Random(seed)` made in reset() (keep it as self.rng), never from time, "
    "id(), hash() or the order of a set of objects, and keep all state on self, none on the class or the module."
)
_SEED_USE = re.compile(r"\b(?:seed|rng|_rng|random|np_random)\b")
_DEFINITION = re.compile(r"^\s*(?:def\s.*|import\s.*|from\s.*|#.*)$", re.MULTILINE)


def determinism(evidence: Evidence) -> list[Finding]:
    """The same seed and actions give the same episode: again, on a used instance, next to others, elsewhere."""
    replays = evidence.replays
    findings: list[Finding] = []
    if replays.twice:
        findings.append(_differs("determinism", "the same seed and actions gave another episode.", replays.twice))
    elif replays.reused:
        words = "an instance that had played before gave another episode after reset(seed): reset() must set all state."
        findings.append(_differs("determinism", words, replays.reused))
    elif replays.alone:
        words = "an episode went differently while other instances were playing: instances share state."
        findings.append(_differs("independence", words, replays.alone))
    if replays.process_error is not None:
        reason = f"the program loads in one process and fails in another: {replays.process_error}. {_RANDOMNESS}"
        findings.append(Finding("determinism", Severity.REFUSE, reason, error_evidence(replays.process_error)))
    elif replays.process and not findings:
        words = "the same seed and actions gave another episode in another process: memory addresses show."
        findings.append(_differs("determinism", words, replays.process))
    elif replays.together and not findings:
        words = (
            "episodes go differently where instances share the module, as they do outside the sandbox: there is state "
            "on the class or the module."
        )
        findings.append(_differs("independence", words, replays.together))
    if replays.shown_tools and not (replays.twice or replays.reused):
        words = "calling get_tools() changed the game: it must only read the state, and draw no random numbers."
        findings.append(_differs("queries", words, replays.shown_tools))
    spoiled = [rollout for rollout in evidence.asked_first if rollout.return_(evidence.config) < WIN_RETURN]
    if spoiled:
        reason = (
            "solution() changes the game: once it was asked, its own answer loses. Keep the answer in an attribute; "
            "solution() and step() must only read it, and draw no random numbers."
        )
        findings.append(Finding("queries", Severity.REFUSE, reason, play_evidence(spoiled[0])))
    elif replays.questioned and not (replays.twice or replays.reused):
        words = (
            "calling hint() or solution() changed the game: they must only read the state, and draw no random numbers."
        )
        findings.append(_differs("queries", words, replays.questioned, Severity.WARN))
    return findings


def deep_copy(evidence: Evidence) -> list[Finding]:
    """A deep copy goes on as the original does; only searching players need that, hence a warning."""
    replays = evidence.replays
    if (error := replays.copy_error) is not None:
        reason = f"an instance cannot be deep-copied: {error}. Keep plain data on self, no generators or iterators."
        return [Finding("deepcopy", Severity.WARN, reason, error_evidence(error))]
    if replays.copied and not (replays.twice or replays.alone):
        words = (
            "a deep copy and its original do not go on independently: some state is shared through a lambda, a "
            "closure, the class or the module. Keep all state in attributes of self."
        )
        return [_differs("deepcopy", words, replays.copied, Severity.WARN)]
    return []


def _differs(probe: str, words: str, differences: list[Difference], severity: Severity = Severity.REFUSE) -> Finding:
    first = min(differences, key=lambda difference: difference.turn)
    reason = words if severity is Severity.WARN else f"{words} {_RANDOMNESS}"
    return Finding(probe, severity, reason, {**first.evidence(), "plays": len(differences)})


def seeds_vary(evidence: Evidence) -> list[Finding]:
    """Different seeds give different puzzles: visibly, or in the solution, or under the same actions."""
    survey = evidence.survey
    observations = {entry.observation for entry in survey}
    if len(observations) > 1:
        if len(observations) * 2 >= len(survey):
            return []
        reason = f"{len(survey)} seeds gave only {len(observations)} different first observations. Draw more at random."
        return [Finding("seeds", Severity.INFO, reason, {"distinct": len(observations), "seeds": len(survey)})]
    if len({json.dumps(entry.solution) for entry in survey}) > 1 or _differ_in_play(evidence.rollouts):
        return []
    advice = "Draw the numbers, words or map of the puzzle in reset() from random.Random(seed)."
    proof = {"seeds": [entry.seed for entry in survey], "observation": shorten(survey[0].observation)}
    if evidence.proven or not _reads_seed(evidence.source):
        reason = f"every seed gives the very same puzzle, which can only be learned by heart. {advice}"
        return [Finding("seeds", evidence.config.constant_seeds, reason, proof)]
    reason = f"no difference between seeds was seen in any play. {advice}"
    return [Finding("seeds", Severity.WARN, reason, proof)]


def _differ_in_play(rollouts: list[Rollout]) -> bool:
    """Whether the same actions were answered differently on different seeds."""
    seen: dict[tuple[str, ...], Turn] = {}
    for rollout in rollouts:
        for turn, result in enumerate(rollout.turns, start=1):
            if seen.setdefault(tuple(rollout.actions[:turn]), result) != result:
                return True
    return False


def _reads_seed(source: str) -> bool:
    """Whether the text uses a seed or random numbers apart from naming them in signatures and imports.

    The source is hostile, so it is not parsed in this process.
    """
    return _SEED_USE.search(_DEFINITION.sub("", source)) is not None
