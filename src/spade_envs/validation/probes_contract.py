"""Probes of the contract: shapes, determinism, independence, endings, sizes, time."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from typing import Any

from spade_envs.record import WIN_RETURN
from spade_envs.sandbox.types import (
    PolicyViolation,
    ProgramDied,
    ProgramError,
    ProgramQuarantined,
    ProgramRaised,
    ProgramTimeout,
    ProtocolViolation,
)
from spade_envs.validation.evidence import Evidence
from spade_envs.validation.finding import Finding, Severity
from spade_envs.validation.policies import GENERAL
from spade_envs.validation.replay import Difference, shorten
from spade_envs.validation.rollout import Rollout

_RANDOMNESS = (
    "Draw every random number from `rng = random.Random(seed)` made in reset() (keep it as self.rng), never from time, "
    "id(), hash() or the order of a set of objects, and keep all state on self, none on the class or the module."
)


def load_failure(error: ProgramError) -> list[Finding]:
    """Why the source could not be loaded."""
    if isinstance(error, PolicyViolation):
        reasons = [{"line": r.line, "column": r.column, "message": r.message} for r in error.reasons]
        words = "; ".join(str(reason) for reason in error.reasons[:5])
        more = f" (and {len(reasons) - 5} more)" if len(reasons) > 5 else ""
        return [Finding("policy", Severity.REFUSE, words + more, {"reasons": reasons[:20]})]
    if isinstance(error, ProtocolViolation):
        advice = "Define one class whose name ends in Env with reset(seed) and step(action) at the top level."
    elif isinstance(error, ProgramRaised):
        advice = "The module must run from top to bottom without errors; move work into reset()."
    else:
        advice = "Do no work at the top level; keep tables small and build them in reset()."
    return [Finding("load", Severity.REFUSE, f"the source does not load: {error}. {advice}", _error(error))]


def contract(evidence: Evidence) -> list[Finding]:
    """make, reset and step return what the contract says, and raise on no ordinary action."""
    for entry in evidence.survey:
        for name in ("make", "reset", "solution", "hint", "tools"):
            if (error := entry.errors.get(name)) is not None:
                expected = _EXPECTED[name]
                if name == "make" and "argument" not in str(error):
                    expected = "Set every attribute before it is used; draw the puzzle in reset()."
                reason = f"{_CALLED[name]} failed on seed {entry.seed}: {error}. {expected}"
                severity = Severity.WARN if name == "hint" else Severity.REFUSE
                return [Finding("contract", severity, reason, {"seed": entry.seed, "call": name, **_error(error)})]
    failed = [rollout for rollout in evidence.rollouts if rollout.error is not None and rollout.policy not in GENERAL]
    if not failed:
        return []
    failed.sort(key=lambda rollout: (len(rollout.actions), rollout.policy, rollout.seed))
    rollout = failed[0]
    assert rollout.error is not None
    action = shorten(rollout.actions[-1]) if rollout.actions else ""
    reason = (
        f"step({action!r}) failed: {rollout.error}. step() must accept any text: parse inside try/except or with a "
        "regular expression, and answer an unusable action with an observation, reward 0.0 and the turn counted. "
        "It returns (observation: str, reward: float, terminated: bool, truncated: bool, info: dict)."
    )
    return [
        Finding("contract", Severity.REFUSE, reason, {**_play(rollout), **_error(rollout.error), "plays": len(failed)})
    ]


_CALLED = {
    "make": "the constructor",
    "reset": "reset()",
    "solution": "solution()",
    "hint": "hint()",
    "tools": "get_tools()",
}
_EXPECTED = {
    "make": "The class must be constructible without arguments: give every parameter of __init__ a default.",
    "reset": "reset(seed=None) must return (observation: str, info: dict) for every integer seed.",
    "solution": "solution() must return a str or a list of str: the answer, or the actions that win from here.",
    "hint": "hint() must return a str.",
    "tools": "get_tools() must return a list of OpenAI function schemas.",
}


def determinism(evidence: Evidence) -> list[Finding]:
    """The same seed and actions give the same episode: again, on a used instance, next to others, elsewhere."""
    replays = evidence.replays
    findings: list[Finding] = []
    if replays.twice:
        findings.append(_differs("determinism", "the same seed and actions gave another episode.", replays.twice))
    elif replays.reused:
        words = "an instance that had played before gave another episode after reset(seed): reset() must set every attribute anew."
        findings.append(_differs("determinism", words, replays.reused))
    elif replays.alone:
        words = "an episode went differently while other instances were playing: instances share state."
        findings.append(_differs("independence", words, replays.alone))
    if replays.process_error is not None:
        words = f"the program loads in one process and fails in another: {replays.process_error}."
        findings.append(Finding("determinism", Severity.REFUSE, words, _error(replays.process_error)))
    elif replays.process and not findings:
        words = "the same seed and actions gave another episode in another process (memory addresses or process state show)."
        findings.append(_differs("determinism", words, replays.process))
    if replays.questioned and not (replays.twice or replays.reused):
        words = (
            "calling hint() or solution() changed the game: they must only read the state, and draw no random numbers."
        )
        findings.append(_differs("queries", words, replays.questioned, Severity.WARN))
    return findings


def _differs(probe: str, words: str, differences: list[Difference], severity: Severity = Severity.REFUSE) -> Finding:
    first = min(differences, key=lambda difference: difference.turn)
    advice = "" if severity is Severity.WARN else f" {_RANDOMNESS}"
    return Finding(probe, severity, words + advice, {**first.evidence(), "plays": len(differences)})


def deep_copy(evidence: Evidence) -> list[Finding]:
    """A deep copy goes on as the original does; only searching players need that, hence a warning."""
    replays = evidence.replays
    if replays.copy_error is not None:
        reason = f"the instance cannot be deep-copied: {replays.copy_error}. Keep plain data on self (no generators, no open iterators)."
        return [Finding("deepcopy", Severity.WARN, reason, _error(replays.copy_error))]
    if replays.copied and not (replays.twice or replays.alone):
        words = (
            "a deep copy and its original do not go on independently: some state is shared through a lambda, a closure, "
            "the class or the module. Keep all state in attributes of self."
        )
        return [_differs("deepcopy", words, replays.copied, Severity.WARN)]
    return []


def seeds_vary(evidence: Evidence) -> list[Finding]:
    """Different seeds give different puzzles, visibly, or in the solution, or under the same actions."""
    survey, config = evidence.survey, evidence.config
    observations = {entry.observation for entry in survey}
    if len(observations) > 1:
        if len(observations) * 2 < len(survey):
            words = f"{len(survey)} seeds gave only {len(observations)} different first observations"
            return [Finding("seeds", Severity.INFO, words, {"distinct": len(observations), "seeds": len(survey)})]
        return []
    solutions = {json.dumps(entry.solution) for entry in survey}
    if len(solutions) > 1:
        return []
    by_policy: dict[str, dict[int, Rollout]] = {}
    for rollout in evidence.rollouts:
        by_policy.setdefault(f"{rollout.policy}", {})[rollout.seed] = rollout
    for rollouts in by_policy.values():
        seen: dict[tuple[str, ...], Any] = {}
        for rollout in rollouts.values():
            for turn in range(1, len(rollout.turns) + 1):
                key = tuple(rollout.actions[:turn])
                if seen.setdefault(key, rollout.turns[turn - 1]) != rollout.turns[turn - 1]:
                    return []
    advice = "Draw the numbers, words or map of the puzzle in reset() from random.Random(seed)."
    proof = {"seeds": [entry.seed for entry in survey], "observation": shorten(survey[0].observation)}
    if evidence.solutions or not _reads_seed(evidence.source):
        words = f"every seed gives the very same puzzle, which can only be learned by heart. {advice}"
        return [Finding("seeds", config.constant_seeds, words, proof)]
    words = f"no difference between seeds was seen in any play. {advice}"
    return [Finding("seeds", Severity.WARN, words, proof)]


def _reads_seed(source: str) -> bool:
    """Whether some reset method uses its seed, or random numbers are drawn anywhere (the sandbox seeds them)."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return True
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Name)
            and node.id in ("seed", "rng", "random", "_rng")
            and isinstance(node.ctx, ast.Load)
        ):
            return True
        if isinstance(node, ast.Attribute) and node.attr in ("rng", "_rng", "np_random"):
            return True
    return False


def termination(evidence: Evidence) -> list[Finding]:
    """Episodes end by themselves within the bound."""
    rollouts = [rollout for rollout in evidence.rollouts if rollout.error is None and rollout.actions]
    endless = [rollout for rollout in rollouts if not (rollout.ended or rollout.stopped or rollout.cut)]
    if not endless:
        return []
    bound = evidence.config.max_steps
    lost = [rollout for rollout in rollouts if rollout.return_(evidence.config) < WIN_RETURN]
    advice = (
        "Count the turn at the top of step(), for unusable actions too, and return truncated=True once "
        "self.turn >= self.max_turns."
    )
    play = {**_play(min(endless, key=lambda rollout: rollout.policy)), "endless": len(endless), "plays": len(rollouts)}
    if not any(rollout.ended for rollout in lost):
        reason = f"no losing episode ended within {bound} steps. {advice}"
        return [Finding("termination", Severity.REFUSE, reason, play)]
    reason = f"{len(endless)} of {len(rollouts)} episodes did not end within {bound} steps. {advice}"
    return [Finding("termination", Severity.WARN, reason, play)]


def observation_size(evidence: Evidence) -> list[Finding]:
    """Observations say something and fit into a context."""
    findings: list[Finding] = []
    config = evidence.config
    blank = [entry.seed for entry in evidence.survey if not entry.observation.strip()]
    if blank:
        reason = "reset() returned an empty observation. Return the task, the data and the answer format as text."
        findings.append(Finding("observation", Severity.REFUSE, reason, {"seeds": blank}))
    ordinary = [rollout for rollout in evidence.rollouts if rollout.policy not in ("echo", "noise")]
    sizes = [(max(len(turn.observation) for turn in rollout.trace()), rollout) for rollout in ordinary]
    if sizes and (worst := max(sizes, key=lambda pair: pair[0]))[0] > config.long_observation:
        reason = f"an observation has {worst[0]} characters. Show the recent part only (at most a few thousand)."
        findings.append(Finding("observation", Severity.WARN, reason, {"size": worst[0], **_play(worst[1])}))
    totals = [(sum(len(turn.observation) for turn in rollout.trace()), rollout) for rollout in ordinary]
    if totals and (worst := max(totals, key=lambda pair: pair[0]))[0] > config.long_episode:
        reason = f"one episode shows {worst[0]} characters in all. Do not repeat the whole history every turn."
        findings.append(Finding("observation", Severity.WARN, reason, {"size": worst[0], **_play(worst[1])}))
    return findings


def resources(evidence: Evidence) -> list[Finding]:
    """Time-outs, deaths of the worker, quarantine, too slow."""
    runner = evidence.runner
    if runner.overdue:
        per = evidence.config.seconds / max(1, runner.operations)
        reason = (
            f"too slow: {runner.operations} calls took more than {evidence.config.seconds:.0f} s (about {per * 1000:.0f} ms "
            "each). Make reset() and step() cheap: smaller puzzles, no exhaustive search."
        )
        return [Finding("resources", Severity.REFUSE, reason, {"operations": runner.operations})]
    if runner.trouble is None:
        return []
    error, operation, seed, actions = runner.trouble
    called = (
        f"{operation.name}({shorten(str(operation.argument), 60)!r})"
        if operation.name == "step"
        else f"{operation.name}()"
    )
    advice = {
        ProgramTimeout: "Bound every loop and every search, and avoid nested quantifiers in regular expressions.",
        ProgramDied: "Bound recursion and the size of lists and numbers.",
        ProgramQuarantined: "Bound loops and memory.",
    }.get(type(error), "")
    play = {
        "call": operation.name,
        "seed": operation.argument if operation.name == "reset" else seed,
        "actions": [shorten(action) for action in actions][-8:],
        **_error(error),
    }
    return [Finding("resources", Severity.REFUSE, f"{called} used too much: {error}. {advice}", play)]


def tools(evidence: Evidence) -> list[Finding]:
    """Function schemas are well formed, and the tools take the parameters that they announce."""
    findings: list[Finding] = []
    schemas = evidence.survey[0].tools if evidence.survey else []
    names: list[str] = []
    for schema in schemas:
        function = schema.get("function", schema)
        name = function.get("name") if isinstance(function, Mapping) else None
        if not isinstance(name, str) or not name:
            reason = 'a tool schema has no name. Write {"type": "function", "function": {"name": …, "parameters": …}}.'
            findings.append(Finding("tools", Severity.REFUSE, reason, {"schema": shorten(str(schema), 300)}))
        else:
            names.append(name)
    for name in sorted({name for name in names if names.count(name) > 1}):
        findings.append(
            Finding("tools", Severity.REFUSE, f"two tools are called {name!r}; rename one.", {"tool": name})
        )
    if "tool_sweep" not in evidence.known_nothing:
        return findings
    rollout = evidence.known_nothing["tool_sweep"][1][0]
    for name, turn in zip(names, rollout.turns, strict=False):
        text = turn.observation
        if any(mark in text for mark in _MISMATCH):
            reason = (
                f"the schema of tool {name!r} and its method disagree: {shorten(text, 200)!r}. Give the method tool_{name} "
                "exactly the parameters of the schema."
            )
            findings.append(
                Finding("tools", Severity.REFUSE, reason, {"tool": name, "observation": shorten(text, 300)})
            )
    return findings


_MISMATCH = (
    "unexpected keyword argument",
    "required positional argument",
    "required keyword-only argument",
    "positional arguments but",
    "positional argument but",
)


def _play(rollout: Rollout) -> dict[str, Any]:
    return {
        "policy": rollout.policy,
        "seed": rollout.seed,
        "actions": [shorten(action) for action in rollout.actions][-8:],
        "observation": shorten(rollout.observation, 300),
    }


def _error(error: ProgramError) -> dict[str, Any]:
    return {"error": error.kind, "message": shorten(str(error), 300)}
