"""Probes of what nothing tells: answers that only the random numbers know, unless play reveals them."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

from spade_envs.record import WIN_RETURN
from spade_envs.validation.comparing import COMPARING
from spade_envs.validation.evidence import Evidence, SeedSurvey
from spade_envs.validation.finding import Finding, Severity
from spade_envs.validation.occurrence import bare, bare_solution
from spade_envs.validation.rollout import Rollout
from spade_envs.validation.secret_draws import RIGHT_MOVES
from spade_envs.validation.shown import shorten

_LIGHTEST = (Severity.INFO, Severity.WARN, Severity.REFUSE)
_COMMON_WORDS = """
yes no true false left right up down north south east west even odd heads tails red black wait stop go
"""
_COMMON = frozenset(_COMMON_WORDS.split())
"""Words that one tries without being shown them; numbers and letters are such, too."""
_TRYING = ("foreign", "repeat", COMPARING)
_BLIND = 3
"""A program that says so few different things to whatever is tried, the same on all seeds, reveals nothing."""


def secrets(evidence: Evidence) -> list[Finding]:
    """Equal first observations with different solutions: fine if play reveals the difference, else a lottery."""
    if group := evidence.look_alikes:
        seeds = {entry.seed for entry in group}
        played = [rollout for rollout in (*evidence.rollouts, *evidence.compared) if rollout.seed in seeds]
        return [_secret(evidence, group, played, f"{len(group)} seeds show the same text and want different answers")]
    same = "the text stays the same when random numbers are drawn otherwise, and the answer does not"
    found = [
        _rare_tie(finding) if twins.rare and finding.severity is Severity.REFUSE else finding
        for twins in evidence.twins
        for finding in [_secret(evidence, twins.entries, twins.plays, same)]
    ]
    return sorted(found, key=lambda finding: _LIGHTEST.index(finding.severity))[:1]


def _secret(evidence: Evidence, group: list[SeedSurvey], rollouts: list[Rollout], same: str) -> Finding:
    proof: dict[str, Any] = {
        "seeds": sorted({entry.seed for entry in group}),
        "observation": shorten(group[0].observation, 300),
        "solutions": [shorten(bare_solution(entry.solution or ())) for entry in group][:4],
    }
    played = [rollout for rollout in rollouts if rollout.error is None]
    advice = (
        "Put all that is needed to work out the answer into the observation, or let actions reveal it, as solution() "
        "does then."
    )
    if played and all(len(rollout.turns) <= 1 for rollout in played):
        return Finding(
            "secrets", Severity.REFUSE, f"a secret: {same}, and the only turn ends the episode. {advice}", proof
        )
    # Seeds also part where one is played by its own solution and the other is not: that says no more than "right",
    # unless the moves are calls of tools, whose results say more.
    tools = bool(evidence.survey[0].tools)
    tried = [rollout for rollout in played if tools or not rollout.policy.startswith("solution_")]
    if _revealed(tried) or _progress(tried):
        return Finding("secrets", Severity.INFO, "the first observation hides the answer; play reveals it.", proof)
    if _can_be_tried(evidence, played):
        reason = "the first observation hides the answer and no feedback was seen; trying all answers would find it."
        return Finding("secrets", Severity.WARN, reason, proof)
    if tools or len(_answers_given(tried)) > _BLIND or _weighs(tried):
        reason = f"{same}, and nothing was seen to tell more. {advice}"
        return Finding("secrets", Severity.WARN, reason, proof)
    return Finding("secrets", Severity.REFUSE, f"a secret: {same}, and no action revealed more. {advice}", proof)


def _rare_tie(finding: Finding) -> Finding:
    reason = (
        "where random numbers happen to be equal, the same text wants different answers. Draw again until they differ, "
        "or say in the text how ties are broken."
    )
    return Finding("secrets", Severity.WARN, reason, finding.evidence)


def _can_be_tried(evidence: Evidence, played: list[Rollout]) -> bool:
    """Whether there are few answers, or few moves, that one can think of, and a wrong one does not end the episode."""
    answers = {tuple(entry.solution or ()) for entry in evidence.survey}
    single = all(len(answer) == 1 for answer in answers)
    options = {bare(move).lower() for answer in answers for move in answer}
    shown = "\n".join({entry.observation for entry in evidence.survey}).lower()
    if any(option not in shown and not _common(option) for option in options):
        return False  # nobody tries what stands nowhere
    lost = [rollout for rollout in played if rollout.return_(evidence.config) < WIN_RETURN]
    tries = max((len(rollout.turns) for rollout in played if rollout.policy.startswith(_TRYING)), default=0)
    # All that there is stands in each text, or the seeds so far have shown it.
    closed = all(option in entry.observation.lower() for option in options for entry in evidence.survey)
    closed |= not single or len(options) * 2 <= len(evidence.survey)
    if all(option.isdecimal() for option in options):
        closed |= max(map(int, options), default=0) <= tries
    too_soon = any(rollout.terminated and len(rollout.turns) < len(options) for rollout in lost)
    return closed and len(options) <= tries and not too_soon


def _common(option: str) -> bool:
    return all(word in _COMMON or word.isdigit() or len(word) == 1 for word in option.split())


def _answers_given(rollouts: list[Rollout]) -> set[str]:
    """What the program says to actions before the end, but for numbers and, where it repeats the action, for that."""
    given: set[str] = set()
    unechoed: set[str] = set()
    for rollout in rollouts:
        for action, result in zip(rollout.actions, rollout.turns, strict=False):
            if not (result.terminated or result.truncated):
                said = re.sub(r"\d+", "", result.observation).strip().lower()
                given.add(said)
                unechoed.add(_unechoed(action, result.observation))
    # Taking the action out makes one answer many where the action is a word of it: "That is not the library."
    return min(given, unechoed, key=len)


def _revealed(rollouts: list[Rollout]) -> bool:
    """Whether some sequence of actions is answered differently on two seeds before the episode ends."""
    seen: dict[tuple[str, ...], str] = {}
    for rollout in rollouts:
        for turn, result in enumerate(rollout.turns, start=1):
            if result.terminated or result.truncated:
                break
            if seen.setdefault(tuple(rollout.actions[:turn]), result.observation) != result.observation:
                return True
    return False


def _weighs(rollouts: list[Rollout]) -> bool:
    """Whether wrong answers of the right form are answered differently in the same turn: "far too little"."""
    said: dict[int, set[str]] = defaultdict(set)
    for rollout in rollouts:
        if rollout.policy.startswith("foreign"):
            for turn, (action, result) in enumerate(zip(rollout.actions, rollout.turns, strict=False)):
                if not (result.terminated or result.truncated):
                    said[turn].add(_unechoed(action, result.observation))
    return any(len(replies) > 1 for replies in said.values())


def _unechoed(action: str, text: str) -> str:
    """What the program says but for numbers and, where it repeats the action, for that."""
    echo = rf"(?<!\w){re.escape(bare(action))}(?!\w)|\d+" if bare(action) else r"\d+"
    return re.sub(echo, "", text).strip().lower()


def _progress(rollouts: list[Rollout]) -> bool:
    """Whether right moves are answered, before the end, as nothing else is that was tried."""
    said: dict[bool, set[str]] = {True: set(), False: set()}
    for rollout in rollouts:
        for result in rollout.turns:
            if not (result.terminated or result.truncated):
                said[rollout.policy == RIGHT_MOVES].add(result.observation)
    return bool(said[True] - said[False])
