"""Playing recorded episodes again: alone, on a used instance, with questions asked, on a copy, in another process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from spade_envs.sandbox.types import Operation, Outcome, ProgramError
from spade_envs.validation.rollout import Rollout, Runner, Turn, as_turn
from spade_envs.validation.shown import shorten


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a replay first left the record. ``turn`` 0 is the reset."""

    seed: int
    actions: tuple[str, ...]
    turn: int
    recorded: Turn | None
    replayed: Turn | ProgramError | None

    def evidence(self) -> dict[str, Any]:
        """JSON-safe evidence for a finding."""
        return {
            "seed": self.seed,
            "actions": [shorten(action) for action in self.actions[: self.turn]][-8:],
            "turn": self.turn,
            "first_time": _shown(self.recorded),
            "second_time": _shown(self.replayed),
        }


@dataclass(slots=True)
class Replays:
    """First differences of each kind of replay; empty lists mean that all replays agreed."""

    alone: list[Difference] = field(default_factory=list)  # a fresh instance against the interleaved record
    twice: list[Difference] = field(default_factory=list)  # two fresh instances, one after the other
    reused: list[Difference] = field(default_factory=list)  # an instance that has played before
    questioned: list[Difference] = field(default_factory=list)  # hint() and solution() asked in between
    shown_tools: list[Difference] = field(default_factory=list)  # get_tools() asked at the start, as every player does
    copied: list[Difference] = field(default_factory=list)  # a deep copy taken half way, and its original
    copy_error: ProgramError | None = None
    process: list[Difference] = field(default_factory=list)  # another process
    together: list[Difference] = field(default_factory=list)  # another process, where instances share their module
    process_error: ProgramError | None = None


def replay(runner: Runner, recorded: Sequence[Rollout], questions: Sequence[str], *, tools: bool = False) -> Replays:
    """Replay the recorded rollouts in this process; two round trips.

    ``questions`` are the methods ("hint", "solution") that are called before each step of some replays; with
    ``tools``, the function schemas are asked for at the start of others.
    """
    replays = Replays()
    used = runner.new_session()
    plans: list[tuple[str, Rollout, list[Operation]]] = []
    for index, rollout in enumerate(recorded):
        first, second = runner.new_session(), runner.new_session()
        plans.append(("first", rollout, _fresh(first, rollout)))
        if index % 2 == 0:
            plans.append(("second", rollout, _fresh(second, rollout)))
        first_time = [Operation("make", used, {})] if index == 0 else []
        plans.append(("reused", rollout, first_time + _again(used, rollout)))
        if questions and (index % 3 == 1 or len(recorded) == 1):
            plans.append(("questioned", rollout, _questioned(runner.new_session(), rollout, questions)))
        if tools:
            make, reset, *steps = _fresh(runner.new_session(), rollout)
            plans.append(("shown_tools", rollout, [make, reset, Operation("tools", make.session), *steps]))
    outcomes = runner.run([operation for _, _, operations in plans for operation in operations])
    position, firsts = 0, {}
    for kind, rollout, operations in plans:
        turns = _read(operations, outcomes[position : position + len(operations)])
        position += len(operations)
        if kind == "first":
            firsts[id(rollout)] = turns
            _compare(rollout, list(rollout.trace()), turns, replays.alone)
        elif kind == "second":
            _compare(rollout, firsts[id(rollout)], turns, replays.twice)
        else:
            _compare(rollout, firsts[id(rollout)], turns, getattr(replays, kind))
    _copies(runner, recorded, firsts, replays)
    return replays


def cross_replay(
    runner: Runner, recorded: Sequence[Rollout], differences: list[Difference], *, shared: bool = False
) -> None:
    """Replay the recorded rollouts on new instances, all at once and turn by turn; note where they differ.

    Where the instances share one module, as they do outside the sandbox, state that hides in it shows. They do if the
    program was opened so, or with ``shared``.
    """
    plans = [_fresh(runner.new_session(), rollout) for rollout in recorded]
    if shared:
        for plan in plans[1:]:
            plan[0] = Operation("sibling", plans[0][0].session, plan[0].session)
    turns: list[list[Turn | ProgramError]] = [[] for _ in plans]
    for turn in range(max(map(len, plans), default=0)):
        playing = [number for number, operations in enumerate(plans) if turn < len(operations)]
        operations = [plans[number][turn] for number in playing]
        for number, operation, outcome in zip(playing, operations, runner.run(operations), strict=True):
            turns[number] += _read([operation], [outcome])
    for rollout, played in zip(recorded, turns, strict=True):
        _compare(rollout, list(rollout.trace()), played, differences)


def _again(session: int, rollout: Rollout) -> list[Operation]:
    return [Operation("reset", session, rollout.seed), *(Operation("step", session, a) for a in rollout.actions)]


def _fresh(session: int, rollout: Rollout) -> list[Operation]:
    return [Operation("make", session, {}), *_again(session, rollout)]


def _questioned(session: int, rollout: Rollout, questions: Sequence[str]) -> list[Operation]:
    operations: list[Operation] = []
    for operation in _fresh(session, rollout):
        if operation.name == "step":
            operations += [Operation(name, session) for name in questions]
        operations.append(operation)
    return operations


def _copies(runner: Runner, recorded: Sequence[Rollout], firsts: dict[int, list[Any]], replays: Replays) -> None:
    """Copy half way, play the original on, then the copy: both must go on as the record did."""
    plans: list[tuple[Rollout, int, list[Operation]]] = []
    for rollout in recorded[1:3] or recorded:
        original, copy = runner.new_session(), runner.new_session()
        half = len(rollout.actions) // 2
        start = _fresh(original, rollout)[: 2 + half]
        both = [Operation("step", session, action) for session in (original, copy) for action in rollout.actions[half:]]
        plans.append((rollout, half, [*start, Operation("copy", original, copy), *both]))
    outcomes = runner.run([operation for _, _, operations in plans for operation in operations])
    position = 0
    for rollout, half, operations in plans:
        results = outcomes[position : position + len(operations)]
        position += len(operations)
        if (error := results[2 + half].error) is not None:
            replays.copy_error = replays.copy_error or error
            continue
        expected = firsts[id(rollout)]
        remaining = len(rollout.actions) - half
        for first in (3 + half, 3 + half + remaining):
            part = slice(first, first + remaining)
            turns = expected[: 1 + half] + _read(operations[part], results[part])
            _compare(rollout, expected, turns, replays.copied)


def _read(operations: Sequence[Operation], outcomes: Sequence[Outcome]) -> list[Turn | ProgramError]:
    turns: list[Turn | ProgramError] = []
    for operation, outcome in zip(operations, outcomes, strict=True):
        if operation.name == "reset":
            turns.append(outcome.error or Turn(outcome.value.observation, 0.0, False, False))
        elif operation.name == "step":
            turns.append(outcome.error or as_turn(outcome.value))
    return turns


def _compare(
    rollout: Rollout, expected: Sequence[Any], turns: Sequence[Turn | ProgramError], into: list[Difference]
) -> None:
    for index, (old, new) in enumerate(zip(expected, turns, strict=True)):
        same = str(old) == str(new) if isinstance(new, ProgramError) or isinstance(old, ProgramError) else old == new
        if not same:
            into.append(Difference(rollout.seed, tuple(rollout.actions), index, old, new))
            return


def _shown(turn: Any) -> dict[str, Any] | str | None:
    if isinstance(turn, Turn):
        return {**turn._asdict(), "observation": shorten(turn.observation, 300)}
    return None if turn is None else f"{type(turn).__name__}: {turn}"[:300]
