"""Probes of answers that stand where they should not: in disguise, at a fixed place, in info, schemas and feedback."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spade_envs.validation import options as read
from spade_envs.validation.disguise import Disguise, disguises
from spade_envs.validation.evidence import Evidence, SeedSurvey
from spade_envs.validation.finding import Finding, Severity
from spade_envs.validation.occurrence import bare_solution, bounded
from spade_envs.validation.rollout import Rollout
from spade_envs.validation.shown import shorten
from spade_envs.validation.tool_evidence import tool_calls

_SHARE = 0.8
"""Share of the seeds on which an answer must stand there, so that chance refuses nobody."""
_LEAST = 4  # seeds
_DATA = 2
"""Tokens that differ from seed to seed beside the disguised answer: with fewer, the disguise itself is the puzzle."""
_TOKEN = re.compile(r"[A-Za-z]+|\d+")
_PROBED = ("repeat", "random_number", "example", "foreign")  # players whose first wrong try is looked at


def leaks(evidence: Evidence) -> list[Finding]:
    """Answers in disguise, at a fixed place of the text, in info, in tool schemas, in the feedback to a wrong try."""
    solved = evidence.solved
    if not any(play.rewards and max(play.rewards) > 0 for plays in evidence.solution_plays.values() for play in plays):
        return []  # what solution() says and step() never pays is no answer
    answers = {entry.seed: bare_solution(entry.solution or ()) for entry in solved}
    findings = _in_schemas(solved)
    if len(set(answers.values())) > 1:
        findings += _disguised(solved, answers)
        findings += _at_a_place(solved, answers) or []
        findings += _in_info(solved, answers)
        findings += _in_feedback(evidence, answers)
    return findings


def _often(found: int, of: int) -> bool:
    return found >= _LEAST and found >= _SHARE * of


def _disguised(solved: Sequence[SeedSurvey], answers: Mapping[int, str]) -> list[Finding]:
    by_name: dict[str, list[tuple[SeedSurvey, Disguise]]] = defaultdict(list)
    for entry in solved:
        for disguise in disguises(answers[entry.seed], entry.observation):
            by_name[disguise.name].append((entry, disguise))
    for name, found in by_name.items():
        if not _often(len(found), len(solved)):
            continue
        entry, disguise = found[0]
        asked = all(disguise.task.search(entry.observation) for entry, disguise in found)
        severity = Severity.INFO if asked else Severity.REFUSE if _data_beside(found) >= _DATA else Severity.WARN
        reason = (
            f"the first observation contains the answer {name} on {len(found)} of {len(solved)} seeds "
            f"({shorten(disguise.shown, 60)!r} is {shorten(answers[entry.seed], 60)!r}). "
            + ("That is the task, it seems." if asked else "Show the data and the question only.")
        )
        return [Finding("leak", severity, reason, _proof(entry, answers[entry.seed], [e.seed for e, _ in found]))]
    return []


def _data_beside(found: Sequence[tuple[SeedSurvey, Disguise]]) -> float:
    """Mean number of tokens that are not in the text of every seed, the disguised answer left out."""
    rests = []
    for entry, disguise in found:
        hidden = set(_TOKEN.findall(disguise.shown.lower()))
        rests.append(set(_TOKEN.findall(entry.observation.lower())) - hidden)
    common = set.intersection(*rests)
    return sum(len(rest - common) for rest in rests) / len(rests)


def _at_a_place(solved: Sequence[SeedSurvey], answers: Mapping[int, str]) -> list[Finding]:
    """The answer always is the k-th number, or word, of the text: an extraction at best."""
    for kind, tokens in (("number", read.numbers), ("word", read.words)):
        rows = [(answers[entry.seed].lower(), [t.lower() for t in tokens(entry.observation)]) for entry in solved]
        if any(answer not in row for answer, row in rows) or (kind == "word" and any(len(a) < 3 for a, _ in rows)):
            continue
        least = min(len(row) for _, row in rows)
        for place in (*range(least), *range(-1, -least - 1, -1)):
            if len(solved) >= _LEAST and all(row[place] == answer for answer, row in rows):
                where = f"{kind} {place + 1}" if place >= 0 else f"{kind} {-place} from the end"
                entry = solved[0]
                reason = (
                    f"the answer always is {where} of the first observation ({shorten(answers[entry.seed], 60)!r}). If "
                    "reading it off is not the task, it is a leak: show the data and the question only."
                )
                proof = _proof(entry, answers[entry.seed], [other.seed for other in solved])
                return [Finding("leak", Severity.WARN, reason, proof)]
    return []


def _in_info(solved: Sequence[SeedSurvey], answers: Mapping[int, str]) -> list[Finding]:
    keys: dict[str, list[SeedSurvey]] = defaultdict(list)
    for entry in solved:
        for key, value in _leaves(entry.info):
            if value == answers[entry.seed]:
                keys[key].append(entry)
    for key, found in keys.items():
        if _often(len(found), len(solved)) and len({answers[entry.seed] for entry in found}) > 2:
            reason = (
                f"reset() puts the answer into info[{key!r}]. Players are not shown it, but whoever passes info on "
                "gives it away: return {} or harmless figures."
            )
            proof = _proof(found[0], answers[found[0].seed], [entry.seed for entry in found])
            return [Finding("leak", Severity.WARN, reason, proof)]
    return []


def _leaves(value: Any, key: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and depth < 4:
        for name, inner in value.items():
            yield from _leaves(inner, str(name), depth + 1)
    elif isinstance(value, str | int | float):
        yield key, str(value).strip()


def _in_schemas(solved: Sequence[SeedSurvey]) -> list[Finding]:
    """Values that only tools should tell stand in the tools' descriptions and defaults.

    Schemas that are the same where another value is right list the choices, and tell none of them.
    """
    found: dict[tuple[str, str], list[tuple[SeedSurvey, str, str]]] = defaultdict(list)
    with_tools = [entry for entry in solved if entry.tools]
    for entry in with_tools:
        schemas = json.dumps([_without_choices(tool) for tool in entry.tools], ensure_ascii=False).lower()
        for name, arguments in (call for action in entry.solution or () for call in tool_calls(action)):
            for parameter, value in arguments.items():
                text = str(value).lower()
                told = isinstance(value, bool) or len(text) < 2 or re.search(bounded(text), entry.observation.lower())
                if not told and text in schemas and re.search(bounded(text), schemas):
                    found[name, parameter].append((entry, str(value), schemas))
    for (name, parameter), entries in found.items():
        right: dict[str, set[str]] = defaultdict(set)
        for _, value, schemas in entries:
            right[schemas].add(value)
        telling = [(entry, value) for entry, value, schemas in entries if len(right[schemas]) == 1]
        several = len({value for _, value in telling}) > 1
        if several and _often(len({entry.seed for entry, _ in telling}), len(with_tools)):
            entry, value = telling[0]
            reason = (
                f"the tool schemas contain {value!r}, which solution() passes to {name!r} as {parameter!r} and no "
                "message says. Describe the parameter without this episode's value."
            )
            proof = {"seed": entry.seed, "tool": name, "parameter": parameter, "value": shorten(value)}
            return [Finding("leak", Severity.REFUSE, reason, proof)]
    return []


def _without_choices(schema: Any) -> Any:
    if isinstance(schema, Mapping):
        return {
            k: _without_choices(v) for k, v in schema.items() if k != "enum" or (isinstance(v, list) and len(v) == 1)
        }
    return [_without_choices(item) for item in schema] if isinstance(schema, list) else schema


def _in_feedback(evidence: Evidence, answers: Mapping[int, str]) -> list[Finding]:
    """The answer to a first wrong try that goes on contains the solution, plain or in disguise."""
    tries: dict[int, list[Rollout]] = defaultdict(list)
    for player, rollouts in evidence.known_nothing.values():
        if player.name.startswith(_PROBED):
            for rollout in rollouts:
                single = rollout.seed in answers and len(evidence.solutions.get(rollout.seed, ())) == 1
                if (
                    single
                    and len(tries[rollout.seed]) < 2
                    and rollout.turns
                    and not (rollout.turns[0].terminated or rollout.turns[0].truncated)
                ):
                    tries[rollout.seed].append(rollout)
    told = {seed: how for seed, rollouts in tries.items() if (how := _told(rollouts, answers[seed]))}
    if len(told) < 2 or len(told) < _SHARE * len(tries):
        return []
    seed, (rollout, manner) = next(iter(told.items()))
    reason = (
        f"after a wrong try the observation contains the answer {manner} ({shorten(answers[seed], 60)!r}). Say how far "
        "off or what is wrong, never the answer, while the episode goes on."
    )
    proof = {"seed": seed, "action": shorten(rollout.actions[0]), "observation": shorten(rollout.turns[0].observation)}
    return [Finding("leak", Severity.WARN, reason, proof)]


def _told(rollouts: Sequence[Rollout], answer: str) -> tuple[Rollout, str] | None:
    low = answer.lower()
    for rollout in rollouts:
        said, before = rollout.turns[0].observation.lower(), (rollout.first + rollout.actions[0]).lower()
        if len(low) > 2 and low in said and low not in before and re.search(bounded(low), said):
            return rollout, "word for word"
        found = {disguise.name for disguise in disguises(answer, said)}
        if found and (new := found - {disguise.name for disguise in disguises(answer, before)}):
            return rollout, min(new)
    return None


def _proof(entry: SeedSurvey, answer: str, seeds: Sequence[int]) -> dict[str, Any]:
    return {
        "seed": entry.seed,
        "solution": shorten(answer),
        "observation": shorten(entry.observation, 300),
        "seeds": list(seeds),
    }
