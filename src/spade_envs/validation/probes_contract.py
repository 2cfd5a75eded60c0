"""Probes of the contract: loading, shapes, endings, sizes, time, tool schemas."""

from __future__ import annotations

import re
from collections.abc import Mapping

from spade_envs.record import WIN_RETURN
from spade_envs.sandbox.types import (
    PolicyViolation,
    ProgramDied,
    ProgramError,
    ProgramRaised,
    ProgramTimeout,
    ProtocolViolation,
)
from spade_envs.validation.advice import PARSE, SHAPE, advice, with_line
from spade_envs.validation.evidence import Evidence
from spade_envs.validation.finding import Finding, Severity
from spade_envs.validation.policies import GENERAL
from spade_envs.validation.rollout import Rollout
from spade_envs.validation.shown import error_evidence, play_evidence, quoted, shorten

_CALLED = {
    "make": "the constructor",
    "reset": "reset()",
    "solution": "solution()",
    "hint": "hint()",
    "tools": "get_tools()",
}
_UNBRACED = re.compile(r"\\boxed(?:[\w(\[<]|['\"](?=\w))\S{0,20}|\x08oxed\S{0,20}")
_CODE = re.compile(r"\bdef \w+\(|\bself\.\w+\s*=[^=]")  # in a text that shows code
_FIELD = re.compile(r"(?<!\{)\{self\.([A-Za-z_]\w*)[^{}\n]*\}(?!\})")
_EXPECTED = {
    "make": "The class must be constructible without arguments: give every parameter of __init__ a default.",
    "reset": "End reset(seed=None) with `return observation, {}`: a str and a dict, for every integer seed.",
    "solution": "solution() must return a str or a list of str: the answer, or the actions that win from here.",
    "hint": "hint() must return a str.",
    "tools": "get_tools() must return a list of OpenAI function schemas.",
}
_DISTINCT = 3
"""Faults of step() that are reported at once, so that a repair does not uncover them one by one."""
_MISMATCH = (
    "unexpected keyword argument",
    "required positional argument",
    "required keyword-only argument",
    "positional arguments but",
    "positional argument but",
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
    reason = f"the source does not load: {error}. {advice}"
    return [Finding("load", Severity.REFUSE, reason, error_evidence(error))]


def contract(evidence: Evidence) -> list[Finding]:
    """make, reset and step return what the contract says, and raise on no ordinary action."""
    findings: list[Finding] = []
    for entry in (*evidence.survey, *evidence.further):
        for name in ("make", "reset", "solution", "hint", "tools"):
            if (error := entry.errors.get(name)) is not None:
                expected = _EXPECTED[name]
                if name == "make" and "argument" not in str(error):
                    expected = "Set every attribute before it is used; draw the puzzle in reset()."
                expected = advice(error, expected, evidence.info.class_name)
                where = f"on seed {entry.seed}" + (" with another random draw" if entry.nudge is not None else "")
                reason = f"{_CALLED[name]} failed {where}: {with_line(error, evidence.source)}. {expected}"
                severity = Severity.WARN if name == "hint" else Severity.REFUSE
                proof = {"seed": entry.seed, "call": name, **error_evidence(error)}
                findings.append(Finding("contract", severity, reason, proof))
                if name in ("make", "reset"):
                    break  # what is asked of an instance that does not stand fails too
        if findings:
            break
    failed = [(r.error, r) for r in evidence.rollouts if r.error is not None and r.policy not in GENERAL]
    if not failed or any(finding.severity is Severity.REFUSE for finding in findings):
        return findings
    failed.sort(key=lambda pair: (len(pair[1].actions), pair[1].policy, pair[1].seed))
    distinct: dict[tuple[str, int], tuple[ProgramError, Rollout]] = {}
    for error, rollout in failed:
        fault = (error.exception, error.line) if isinstance(error, ProgramRaised) else (error.kind, 0)
        distinct.setdefault(fault, (error, rollout))
    for error, rollout in list(distinct.values())[:_DISTINCT]:
        if rollout.actions:
            called = f"step({quoted(rollout.actions[-1])}) failed"
            expected = PARSE if isinstance(error, ProgramRaised) else SHAPE
        else:  # on a seed that the survey did not look at
            called, expected = f"reset() failed on seed {rollout.seed}", _EXPECTED["reset"]
        expected = advice(error, expected, evidence.info.class_name)
        reason = f"{called}: {with_line(error, evidence.source)}. {expected}"
        proof = {**play_evidence(rollout), **error_evidence(error), "plays": len(failed)}
        findings.append(Finding("contract", Severity.REFUSE, reason, proof))
    return findings


def termination(evidence: Evidence) -> list[Finding]:
    """Episodes end by themselves within the bound, lost ones too."""
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
    play = play_evidence(min(endless, key=lambda rollout: rollout.policy))
    proof = {**play, "endless": len(endless), "plays": len(rollouts)}
    if not any(rollout.ended for rollout in lost):
        reason = f"no losing episode ended within {bound} steps. {advice}"
        return [Finding("termination", Severity.REFUSE, reason, proof)]
    reason = f"{len(endless)} of {len(rollouts)} episodes did not end within {bound} steps. {advice}"
    return [Finding("termination", Severity.WARN, reason, proof)]


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
        proof = {"size": worst[0], **play_evidence(worst[1])}
        findings.append(Finding("observation", Severity.WARN, reason, proof))
    totals = [(sum(len(turn.observation) for turn in rollout.trace()), rollout) for rollout in ordinary]
    if totals and (worst := max(totals, key=lambda pair: pair[0]))[0] > config.long_episode:
        reason = f"one episode shows {worst[0]} characters in all. Do not repeat the whole history every turn."
        proof = {"size": worst[0], **play_evidence(worst[1])}
        findings.append(Finding("observation", Severity.WARN, reason, proof))
    return findings


def unformatted(evidence: Evidence) -> list[Finding]:
    r"""Observations show values, not fields of a string whose f is missing, and ``\boxed{word}`` with its braces."""
    for rollout in evidence.rollouts:
        for turn in rollout.trace():
            if "oxed" in turn.observation and (match := _UNBRACED.search(turn.observation)):
                reason = (
                    f"an observation shows {match[0]!r}: write \\\\boxed{{word}} with two backslashes, with doubled "
                    "braces in an f-string, where {word} is replaced by its value."
                )
                proof = {"seed": rollout.seed, "observation": shorten(turn.observation, 300)}
                return [Finding("observation", Severity.REFUSE, reason, proof)]
            if "{self." not in turn.observation or _CODE.search(turn.observation):
                continue
            for field in _FIELD.finditer(turn.observation):
                # Of the program's own attributes only: a game about code may well show such text.
                if re.search(rf"\bself\.{field[1]}\s*(?::[^=\n]+)?=(?!=)", evidence.source):
                    reason = (
                        f"an observation shows {field[0]!r} where a value should stand. Put an f before the string, "
                        "before each part of it."
                    )
                    proof = {"seed": rollout.seed, "observation": shorten(turn.observation, 300)}
                    return [Finding("observation", Severity.REFUSE, reason, proof)]
    return []


def resources(evidence: Evidence) -> list[Finding]:
    """Time-outs, deaths of the worker, quarantine, too slow."""
    runner = evidence.runner
    if runner.overdue:
        allowed = evidence.config.seconds
        reason = (
            f"too slow: {runner.operations} calls took more than {allowed:.0f} s. Make reset() and step() cheap: "
            "smaller puzzles, no exhaustive search."
        )
        return [Finding("resources", Severity.REFUSE, reason, {"operations": runner.operations})]
    if runner.trouble is None:
        return []
    error, operation, seed, actions = runner.trouble
    called = f"step({quoted(operation.argument)})" if operation.name == "step" else f"{operation.name}()"
    if isinstance(error, ProgramTimeout):
        advice = "Bound every loop and every search, and avoid nested quantifiers in regular expressions."
    elif isinstance(error, ProgramDied):
        advice = "Bound recursion and the size of lists and numbers."
    else:
        advice = "Bound loops and memory."
    proof = {
        "call": operation.name,
        "seed": operation.argument if operation.name == "reset" else seed,
        "actions": [shorten(action) for action in actions][-8:],
        **error_evidence(error),
    }
    return [Finding("resources", Severity.REFUSE, f"{called} used too much: {error}. {advice}", proof)]


def tools(evidence: Evidence) -> list[Finding]:
    """Function schemas are well formed, and the tools take the parameters that they announce."""
    findings: list[Finding] = []
    names: list[str] = []
    for schema in evidence.survey[0].tools:
        function = schema.get("function", schema)
        name = function.get("name") if isinstance(function, Mapping) else None
        if isinstance(name, str) and name:
            names.append(name)
        else:
            reason = 'a tool schema has no name: write {"type": "function", "function": {"name": …, "parameters": …}}.'
            findings.append(Finding("tools", Severity.REFUSE, reason, {"schema": shorten(str(schema), 300)}))
    for name in sorted({name for name in names if names.count(name) > 1}):
        reason = f"two tools are called {name!r}. Give every tool a name of its own."
        findings.append(Finding("tools", Severity.REFUSE, reason, {"tool": name}))
    if "tool_sweep" not in evidence.known_nothing:
        return findings
    judged = [rollout for rollout in evidence.rollouts if rollout.terminated and rollout.policy != "noise"]
    broken = [rollout for rollout in judged if rollout.criteria_errors]
    if broken and len(broken) == len(judged):
        reason = (
            f"a success condition raised in every episode: {shorten(broken[0].criteria_errors, 200)}. Conditions take "
            "the state and return True or False; use the keys that reset() puts into self._state."
        )
        findings.append(Finding("tools", Severity.REFUSE, reason, play_evidence(broken[0])))
    sweep = evidence.known_nothing["tool_sweep"][1][0]
    for name, turn in zip(names, sweep.turns, strict=False):
        text = shorten(turn.observation, 200)
        if any(mark in turn.observation for mark in _MISMATCH):
            reason = (
                f"the schema of tool {name!r} and its method disagree: {text!r}. Give the method tool_{name} exactly "
                "the parameters of the schema."
            )
            findings.append(Finding("tools", Severity.REFUSE, reason, {"tool": name, "observation": text}))
        elif "unknown tool" in turn.observation:
            reason = f"the schema announces tool {name!r}, but there is no method. Define tool_{name} on the class."
            findings.append(Finding("tools", Severity.REFUSE, reason, {"tool": name, "observation": text}))
    return findings
