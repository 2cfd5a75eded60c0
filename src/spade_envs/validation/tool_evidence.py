"""What the probes of tool environments look at: conditions at reset, early answers, searches over tool calls."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from spade_envs.contract import name_and_arguments, parse_tool_calls
from spade_envs.record import WIN_RETURN
from spade_envs.sandbox.inspection import ToolInspection
from spade_envs.sandbox.types import Operation
from spade_envs.validation.evidence import Evidence
from spade_envs.validation.policies import DONE
from spade_envs.validation.rollout import CollectionStopped, Rollout
from spade_envs.validation.tool_search import Search, search
from spade_envs.validation.tool_values import Values

_ANSWER = re.compile(r"<answer>.*?</answer>", re.DOTALL)
_MAX_PREFIXES = 10
_ENOUGH_CALLS = 60
_CONSTANTS = (1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 12.0, 24.0, 60.0, 100.0, 1000.0)


@dataclass(frozen=True, slots=True)
class Early:
    """A final answer that was paid, or not, after some actions."""

    seed: int
    actions: tuple[str, ...]
    answer: str
    reward: float
    missing: tuple[int, ...]  # conditions that did not hold


@dataclass(frozen=True, slots=True)
class Unstated:
    """An argument of a winning call that nothing tells a player."""

    seed: int
    tool: str
    parameter: str
    value: Any
    actions: tuple[str, ...]  # those before the call
    sure: bool  # every other tool answered, and calls enough were tried


@dataclass(slots=True)
class ToolEvidence:
    """Evidence on one tool environment."""

    at_reset: dict[int, ToolInspection] = field(default_factory=dict)
    early: list[Early] = field(default_factory=list)
    unpaid: list[Early] = field(default_factory=list)
    searches: list[Search] = field(default_factory=list)
    knowing: dict[int, Search] = field(default_factory=dict)  # seed -> search with what only the state knows
    why: dict[int, dict[int, tuple[str, ...]]] = field(default_factory=dict)  # seed -> condition -> changes that help
    unstated: list[Unstated] = field(default_factory=list)

    @property
    def full(self) -> ToolInspection:
        """The complete inspection of the first seed."""
        return next(iter(self.at_reset.values()))


def collect_tools(evidence: Evidence) -> ToolEvidence | None:
    """Look into a program that offers tools; None for others, and for those that cannot be looked into.

    A program that times out or dies here is no longer complete, as in
    :func:`~spade_envs.validation.collecting.collect`.

    Raises:
        SandboxError: if the machinery fails.
    """
    if not evidence.complete or not evidence.survey[0].tools:
        return None
    found = ToolEvidence()
    try:
        _at_reset(evidence, found)
        if not found.at_reset:
            return None
        if found.full.criteria:
            if evidence.proven:
                _early(evidence, found)
                _unstated(evidence, found)
            elif evidence.config.tool_operations:
                seeds = [seed for seed in evidence.play_order[: evidence.config.tool_seeds] if seed in found.at_reset]
                hopeless = [index for index in range(len(found.full.criteria)) if _hopeless(found, seeds, index)]
                for seed in seeds if not hopeless else ():
                    _search(evidence, found, seed)
    except CollectionStopped:
        evidence.complete = False
    return found


def _at_reset(evidence: Evidence, found: ToolEvidence) -> None:
    order = evidence.play_order[: evidence.config.tool_seeds]
    seeds = [*order, *(seed for seed in evidence.config.seeds if seed not in order)]
    session = evidence.runner.new_session()
    operations = []
    for seed in seeds:
        asked = "full" if seed in order else "brief"
        operations += [Operation("make", session, {}), Operation("reset", session, seed)]
        operations.append(Operation("inspect", session, asked))
    for seed, outcome in zip(seeds, evidence.runner.run(operations)[2::3], strict=True):
        if isinstance(outcome.value, ToolInspection):
            found.at_reset[seed] = outcome.value
        elif seed == seeds[0]:
            return


def _hopeless(found: ToolEvidence, seeds: Sequence[int], index: int) -> bool:
    """Whether no tool can change what a condition reads, on any of the seeds: nothing need be searched."""
    views = [found.at_reset[seed].criteria for seed in seeds]
    return all(index < len(criteria) and bool(criteria[index].fixed) for criteria in views)


def tool_calls(action: str) -> list[tuple[str, dict[str, Any]]]:
    """The calls in an action, names and arguments; what is no call is left out."""
    pairs = [name_and_arguments(call) for call in parse_tool_calls(action) if not isinstance(call, str)]
    return [(name, arguments) for name, arguments in pairs if isinstance(arguments, dict)]


def _budget(evidence: Evidence) -> int:
    """Operations for one search: what was configured, or what half of the remaining time allows a slow program."""
    runner = evidence.runner
    if runner.pace <= 0.002:
        return evidence.config.tool_operations
    left = evidence.config.seconds - runner.pace * runner.operations
    return min(evidence.config.tool_operations, int(left / runner.pace / 4))


def _early(evidence: Evidence, found: ToolEvidence) -> None:
    """Give the final answer after each part of the solution but the whole of it."""
    for seed, plays in list(evidence.solution_plays.items())[: evidence.config.tool_seeds]:
        actions = plays[0].actions
        answers = _ANSWER.findall(actions[-1]) if actions else []
        if not answers:
            continue
        prefixes = [tuple(actions[:length]) for length in range(len(actions))][:_MAX_PREFIXES]
        found.early += _answered(evidence, seed, prefixes, answers[-1:])


def _answered(
    evidence: Evidence, seed: int, prefixes: Sequence[tuple[str, ...]], answers: Sequence[str]
) -> list[Early]:
    session = evidence.runner.new_session()
    operations, places = [], []
    for prefix in prefixes:
        for answer in answers:
            operations += [Operation("make", session, {}), Operation("reset", session, seed)]
            operations += [Operation("step", session, action) for action in prefix]
            operations += [Operation("inspect", session, "brief"), Operation("step", session, answer)]
            places.append((prefix, answer, len(operations)))
    outcomes = evidence.runner.run(operations)
    tried = []
    for prefix, answer, end in places:
        inspected, stepped = outcomes[end - 2 : end]
        if isinstance(inspected.value, ToolInspection) and stepped.error is None:
            paid = stepped.value.reward if stepped.value.terminated else 0.0
            missing = [i for i, criterion in enumerate(inspected.value.criteria) if not criterion.holds]
            tried.append(Early(seed, prefix, answer, paid, tuple(missing)))
    return tried


def _unstated(evidence: Evidence, found: ToolEvidence) -> None:
    """Arguments of the solution that stand in nothing that was shown before, nor can be looked up."""
    for seed, plays in list(evidence.solution_plays.items())[: evidence.config.tool_seeds]:
        unstated = _first_unstated(evidence, plays[0])
        if unstated is None or not evidence.config.tool_operations:
            return
        values, (tool, parameter, value, before) = unstated
        looked = search(
            evidence.runner,
            seed,
            evidence.survey[0].tools,
            plays[0].first,
            _budget(evidence),
            starts=[(), before] if before else [()],
            known=values,
        )
        if looked.won is not None or looked.values.knows(value):
            return
        found.unstated.append(Unstated(seed, tool, parameter, value, before, _sure(evidence, looked, tool)))


def _first_unstated(evidence: Evidence, play: Rollout) -> tuple[Values, tuple[str, str, Any, tuple[str, ...]]] | None:
    values = Values()
    values.instruction(play.first)
    for schema in evidence.survey[0].tools:
        values.texts.append(str(schema)[:8_000])
    seen = [play.first, *(turn.observation for turn in play.turns)]
    for index, action in enumerate(play.actions):
        if index:
            values.read(seen[index])
            values.instruction(seen[index].rpartition("User: ")[2])
        for tool, arguments in tool_calls(action):
            for parameter, value in arguments.items():
                if opaque(value) and not values.knows(value) and not computable(value, values):
                    return values, (tool, parameter, value, tuple(play.actions[:index]))
    return None


def opaque(value: Any) -> bool:
    """Whether a value looks drawn at random: a code of letters and digits, or a number of four digits and more.

    Words may follow from what was said, small numbers from counting.
    """
    if type(value) is int:
        return abs(value) >= 1_000
    if type(value) is not str or not 4 <= len(value) <= 40 or " " in value:
        return False
    digits = sum(character.isdigit() for character in value)
    plain = re.fullmatch(r"[A-Za-z0-9_#-]+", value) is not None
    dated = re.fullmatch(r"\d{4}-\d\d-\d\d.*", value) is not None
    return plain and digits >= 2 and not dated and not (value.isdigit() and len(value) < 4)


def computable(value: Any, values: Values) -> bool:
    """Whether a number follows from two that were seen, by one operation."""
    if type(value) is str:
        if not value.lstrip("-").isdigit():
            return False
        value = int(value)
    if type(value) not in (int, float):
        return False
    numbers = [*values.numbers(), *_CONSTANTS]
    for left in numbers:
        for right in numbers:
            results = [left + right, left - right, left * right, left * right / 100, left * (100 - right) / 100]
            results += [left / right, left // right, left % right] if right else []
            if any(abs(result - value) < 1 for result in results):
                return True
    return False


def _search(evidence: Evidence, found: ToolEvidence, seed: int) -> None:
    first = next(entry.observation for entry in evidence.survey if entry.seed == seed)
    schemas, runner = evidence.survey[0].tools, evidence.runner
    done = search(runner, seed, schemas, first, _budget(evidence))
    found.searches.append(done)
    inspection = found.at_reset[seed]
    if done.won is not None:
        answers = [DONE] + ([f"<answer>{inspection.expected}</answer>"] if inspection.expected is not None else [])
        tried = _answered(evidence, seed, [done.won], answers)
        if tried and all(entry.reward < WIN_RETURN for entry in tried):
            found.unpaid.append(tried[-1])
        return
    found.why[seed] = _why(evidence, seed, done.states)
    if len(done.reached.keys() | found.why[seed].keys()) == len(inspection.criteria):
        return
    hidden = [*inspection.state.values(), *inspection.hidden, inspection.expected]
    knowing = search(runner, seed, schemas, first, _budget(evidence) // 2, more=[v for v in hidden if v is not None])
    found.knowing[seed] = knowing
    for index, actions in knowing.reached.items():
        if index not in done.reached:
            _blame(evidence, done, actions, found)


def _blame(evidence: Evidence, done: Search, actions: tuple[str, ...], found: ToolEvidence) -> None:
    for place, action in enumerate(actions):
        for tool, arguments in tool_calls(action):
            for parameter, value in arguments.items():
                if not done.values.knows(value):
                    sure = _sure(evidence, done, tool)
                    found.unstated.append(Unstated(done.seed, tool, parameter, value, actions[:place], sure))
                    return


def _sure(evidence: Evidence, done: Search, tool: str) -> bool:
    """Whether a search saw what tools tell: each but ``tool`` answered without an error, and it was not cut short."""
    names = {schema.get("function", schema).get("name") for schema in evidence.survey[0].tools}
    return names - {tool} <= done.worked and (done.exhausted or done.calls >= _ENOUGH_CALLS)


def _why(evidence: Evidence, seed: int, plays: Sequence[tuple[str, ...]]) -> dict[int, tuple[str, ...]]:
    """Which changes of type or spelling would make conditions hold, after calls that change something."""
    session = evidence.runner.new_session()
    operations, ends = [], []
    for play in plays:
        operations += [Operation("make", session, {}), Operation("reset", session, seed)]
        operations += [Operation("step", session, action) for action in play]
        operations.append(Operation("inspect", session, "why"))
        ends.append(len(operations))
    outcomes = evidence.runner.run(operations) if operations else []
    helped: dict[int, tuple[str, ...]] = {}
    for end in ends:
        value = outcomes[end - 1].value
        for index, criterion in enumerate(value.criteria if isinstance(value, ToolInspection) else ()):
            vague = bool(criterion.mends) and " outright:" in criterion.mends[0]
            if criterion.mends and (index not in helped or (" outright:" in helped[index][0] and not vague)):
                helped[index] = criterion.mends
    return helped
