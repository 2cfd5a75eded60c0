"""Probes of tool environments: success conditions, what can be reached, the final answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from spade_envs.record import WIN_RETURN
from spade_envs.sandbox.inspection import ToolInspection
from spade_envs.validation.evidence import Evidence
from spade_envs.validation.finding import Finding, Severity
from spade_envs.validation.probes_schemas import schema_probe
from spade_envs.validation.shown import quoted, shorten
from spade_envs.validation.tool_evidence import ToolEvidence, Unstated, opaque, tool_calls

_DEMAND = re.compile(
    r"answer|report|tell|reply|respond|return|give|state|what|which|who|when|where|how (?:many|much)|\?|name the|find",
    re.IGNORECASE,
)
_TYPES = ("number", "text", "true or false", "keys")
"""Words of the worker for changes of type; others are changes of spelling."""


def tool_probes(evidence: Evidence, tools: ToolEvidence | None, said: Sequence[Finding] = ()) -> list[Finding]:
    """All findings on tools but those that ``said`` has on the same tool; none without evidence on tools."""
    if tools is None:
        return []
    told = {finding.evidence.get("tool") for finding in said if finding.probe == "tools"}
    fitting = schema_probe(evidence, tools.full)
    at_reset, never = conditions(evidence, tools), reachability(evidence, tools)
    # One condition is refused once: by what it reads, else by what it raises.
    hopeless = _refused(never)
    at_reset = [finding for finding in at_reset if finding.evidence.get("criterion") not in hopeless]
    broken = _refused(at_reset)
    if any(finding.severity is Severity.REFUSE for finding in (*fitting, *said) if finding.probe == "tools"):
        never = [finding for finding in never if finding.severity is Severity.REFUSE]  # calls that fail reach nothing
    return [
        *(finding for finding in fitting if finding.evidence["tool"] not in told),
        *at_reset,
        *counts(evidence, tools),
        *(finding for finding in never if finding.evidence["criterion"] not in broken),
        *answers(evidence, tools),
        *stated(tools),
    ]


def _refused(findings: Sequence[Finding]) -> set[int]:
    return {finding.evidence.get("criterion", -1) for finding in findings if finding.severity is Severity.REFUSE}


# -- conditions -----------------------------------------------------------------------------------
def _named(inside: ToolInspection, index: int) -> str:
    told = f" ({quoted(inside.messages[index])})" if index < len(inside.messages) else ""
    return f"condition {index}{told}"


def conditions(evidence: Evidence, tools: ToolEvidence) -> list[Finding]:
    """Conditions are false at reset, and give True or False."""
    inside, total = tools.full, len(tools.at_reset)
    findings: list[Finding] = []
    won = [
        seed
        for seed, seen in tools.at_reset.items()
        if seen.criteria and all(criterion.holds for criterion in seen.criteria)
    ]
    if won:
        severity = Severity.REFUSE if inside.expected is None else Severity.WARN
        reason = (
            f"every success condition holds at reset already on {len(won)} of {total} seeds: nothing has to be done. "
            "Let reset() draw a state that differs from the goal, and let conditions look for the change."
        )
        findings.append(Finding("criteria", severity, reason, {"seeds": won}))
    for index in range(len(inside.criteria)):
        seen = {seed: view.criteria[index] for seed, view in tools.at_reset.items() if index < len(view.criteria)}
        true = [seed for seed, criterion in seen.items() if criterion.holds and seed not in won]
        raised = [seed for seed, criterion in seen.items() if criterion.holds is None]
        if true:
            reason = (
                f"{_named(inside, index)} holds at reset already on {len(true)} of {total} seeds. Unless it only "
                "guards against changes, it asks for nothing: make it true only after the right calls."
            )
            findings.append(Finding("criteria", Severity.WARN, reason, {"criterion": index, "seeds": true}))
        if raised:
            findings += _raised(evidence, tools, index, raised)
    return findings


def _raised(evidence: Evidence, tools: ToolEvidence, index: int, seeds: list[int]) -> list[Finding]:
    inside, error = tools.full, tools.at_reset[seeds[0]].criteria[index].error
    judged = any(index in search.judged for search in tools.searches)
    searched = bool(tools.searches) and all(search.calls for search in tools.searches)
    everywhere = len(seeds) == len(tools.at_reset)
    broken = everywhere and not evidence.proven and searched and not judged
    where = "on every seed and after every call that was tried" if broken else f"at reset on {len(seeds)} of "
    where += "" if broken else f"{len(tools.at_reset)} seeds"
    reason = (
        f"{_named(inside, index)} raises {where}: {shorten(error, 120)}. A condition that raises is not fulfilled: use "
        "keys that reset() puts into self._state, and .get() for what tools add."
    )
    proof = {"criterion": index, "seeds": seeds, "error": error}
    return [Finding("criteria", Severity.REFUSE if broken else Severity.WARN, reason, proof)]


def counts(evidence: Evidence, tools: ToolEvidence) -> list[Finding]:
    """There is one condition for each instruction."""
    inside = tools.full
    messages, criteria = len(inside.messages), len(inside.criteria)
    if not messages or not criteria or messages == criteria:
        return []
    if criteria > messages:
        what = f"the last {criteria - messages} are demanded by no instruction"
    else:
        what = f"the last {messages - criteria} instructions are not checked"
    reason = (
        f"there are {messages} instructions and {criteria} success conditions: {what}. Write one condition for each "
        "instruction, in their order."
    )
    severity = Severity.WARN if evidence.proven else Severity.REFUSE
    return [Finding("criteria", severity, reason, {"messages": messages, "criteria": criteria})]


# -- reachability ---------------------------------------------------------------------------------
def reachability(evidence: Evidence, tools: ToolEvidence) -> list[Finding]:
    """Tools can make every condition true."""
    if evidence.proven:
        return []
    findings = []
    inside = tools.full
    for index, criterion in enumerate(inside.criteria):
        seen = [tools.at_reset[seed].criteria for seed in _looked_into(evidence, tools)]
        views = [criteria[index] for criteria in seen if index < len(criteria)]
        if criterion.fixed and all(view.fixed for view in views):
            keys = ", ".join(f"state[{key!r}]" for key in criterion.fixed)
            reason = (
                f"{_named(inside, index)} can never hold: it reads {keys}, and no tool's code mentions that key. Let "
                "a tool write what the condition reads, under the same name."
            )
            known = {"criterion": index, "reads": list(criterion.fixed)}
            findings.append(Finding("criteria", Severity.REFUSE, reason, known))
    for index in range(len(inside.criteria)):
        missed = [search for search in tools.searches if index not in search.reached]
        if not missed:
            continue
        seed = missed[0].seed
        always = len(missed) == len(tools.searches)
        calls = sum(search.calls for search in missed)
        proof: dict[str, Any] = {"criterion": index, "seeds": [search.seed for search in missed], "calls": calls}
        mends = tools.why.get(seed, {}).get(index, ())
        typed = [mend for mend in mends if any(word in mend.rpartition(": ")[2] for word in _TYPES)]
        blamed = any(unstated.seed == search.seed for unstated in tools.unstated for search in missed)
        if mends and "no tool's code names:" in mends[0] and always:
            reason = (
                f"{_named(inside, index)} can never hold: after the right calls it still wants another value of "
                f"{mends[0]}. Let a tool write it, or leave it out of the condition."
            )
            findings.append(Finding("criteria", Severity.REFUSE, reason, {**proof, "wants": list(mends)}))
        elif typed and always:
            reason = (
                f"{_named(inside, index)} cannot be fulfilled as the schemas say; it would hold with {typed[0]}. "
                "Compare values of one type: store and check the same."
            )
            findings.append(Finding("criteria", Severity.REFUSE, reason, {**proof, "would_hold_with": list(mends)}))
        elif mends and " outright:" in mends[0]:
            reason = (
                f"{_named(inside, index)} was not fulfilled by {calls} calls; they left it wanting another value of "
                f"{mends[0]}. Check that a tool can write it."
            )
            findings.append(Finding("criteria", Severity.WARN, reason, {**proof, "wants": list(mends)}))
        elif mends:
            reason = (
                f"{_named(inside, index)} was not fulfilled by {calls} calls; it would hold with {mends[0]}. Compare "
                "without regard to spelling, or say in the instruction how to spell."
            )
            findings.append(Finding("criteria", Severity.WARN, reason, {**proof, "would_hold_with": list(mends)}))
        elif not blamed:
            findings.append(_unreached(tools, index, proof, always))
    return findings


def _looked_into(evidence: Evidence, tools: ToolEvidence) -> set[int]:
    """Seeds whose conditions were looked at in full."""
    return {seed for seed in evidence.play_order[: evidence.config.tool_seeds] if seed in tools.at_reset}


def _unreached(tools: ToolEvidence, index: int, proof: dict[str, Any], always: bool) -> Finding:
    missed = [search for search in tools.searches if index not in search.reached]
    changing = {tool for search in missed for tool in search.changing}
    failing = sorted(set(tools.full.methods) - {tool for search in missed for tool in search.worked})
    where = "" if always else f" on {len(missed)} of {len(tools.searches)} seeds"
    exhausted = all(search.exhausted for search in missed)
    tried = f"all {proof['calls']} likely calls," if exhausted else f"{proof['calls']} calls"
    notes = "" if changing else " None of them changed the state."
    notes += f" These never succeeded: {', '.join(failing[:6])}." if failing else ""
    reason = (
        f"{_named(tools.full, index)} was not fulfilled{where} by {tried} with arguments from "
        f"instructions, schemas and results.{notes} Check that a tool can write exactly what it compares; a "
        "solution() that wins proves it."
    )
    return Finding("criteria", Severity.WARN, reason, {**proof, "never_succeeded": failing[:20]})


def stated(tools: ToolEvidence) -> list[Finding]:
    """What a winning call needs is said somewhere: in an instruction, a schema, or a result."""
    by_parameter: dict[tuple[str, str], list[Unstated]] = {}
    for entry in tools.unstated:
        by_parameter.setdefault((entry.tool, entry.parameter), []).append(entry)
    findings = []
    for (tool, parameter), entries in by_parameter.items():
        first = entries[0]
        certain = all(entry.sure and opaque(entry.value) and type(entry.value) is str for entry in entries)
        certain = certain and len({entry.seed for entry in entries}) > 1
        reason = (
            f"tool {tool!r} needs {parameter}={quoted(str(first.value))}, which no instruction says and no tool was "
            "seen to return. Name it in an instruction, or let a tool return it."
        )
        proof = {
            "tool": tool,
            "parameter": parameter,
            "values": {str(entry.seed): str(entry.value) for entry in entries},
            "after": [shorten(action) for action in first.actions][-8:],
        }
        findings.append(Finding("criteria", Severity.REFUSE if certain else Severity.WARN, reason, proof))
    return findings


# -- the final answer -----------------------------------------------------------------------------
def answers(evidence: Evidence, tools: ToolEvidence) -> list[Finding]:
    """The final answer is asked for, pays when all is done, and only then; tools are needed."""
    findings: list[Finding] = []
    paid = [entry for entry in tools.early if entry.missing and entry.reward >= WIN_RETURN]
    if paid:
        first = paid[0]
        reason = (
            f"the final answer is paid {first.reward:g} after {len(first.actions)} actions, while condition "
            f"{', '.join(map(str, first.missing))} does not hold. Pay only when all conditions hold."
        )
        proof = {"criteria": list(first.missing), **_play(first.seed, first.actions, first.answer)}
        findings.append(Finding("criteria", Severity.REFUSE, reason, proof))
    if tools.unpaid:
        entry = tools.unpaid[0]
        reason = (
            f"all conditions hold after {len(entry.actions)} calls, but the final answer is not paid. Pay 1.0 on "
            "<answer>done</answer>, or say which answer is expected."
        )
        findings.append(Finding("criteria", Severity.WARN, reason, _play(entry.seed, entry.actions, entry.answer)))
    inside = tools.full
    first_shown = evidence.survey[0].observation
    if inside.expected is not None and not any(_DEMAND.search(text) for text in (*inside.messages, first_shown)):
        reason = (
            f"an answer ({quoted(inside.expected)}) is expected, but no instruction asks for one. Ask for it in the "
            "last instruction, or leave self._expected_answer None."
        )
        findings.append(Finding("criteria", Severity.WARN, reason, {"expected": shorten(inside.expected)}))
    played = [attempts[0] for attempts in evidence.solution_plays.values()]
    won = [play for play in played if play.return_(evidence.config) >= WIN_RETURN]
    idle = [play for play in won if not any(tool_calls(action) for action in play.actions)]
    if won and len(idle) == len(won):
        reason = "solution() wins without calling any tool. Ask for something that only tools can look up or change."
        proof = _play(idle[0].seed, tuple(idle[0].actions), "")
        findings.append(Finding("criteria", Severity.WARN, reason, proof))
    return findings


def _play(seed: int, actions: tuple[str, ...], answer: str) -> dict[str, Any]:
    shown = [shorten(action) for action in actions][-8:]
    return {"seed": seed, "actions": [*shown, answer] if answer else shown}
