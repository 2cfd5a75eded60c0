"""What happened to the sessions of one program: enough to revive them in a new worker by playing them again.

A session's journal is its constructor's arguments and every operation since its last reset. The last observation
is remembered as well: a revived session that shows another one belongs to a program that is not deterministic,
and is lost rather than silently wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from spade_envs.sandbox.types import (
    Operation,
    Outcome,
    ProgramDied,
    ProgramTimeout,
    ResetResult,
    StepResult,
)

_PLAIN = frozenset({"reset", "step", "hint", "solution", "tools", "inspect", "nudge"})
"""Operations on a session that leave the sessions there are as they are."""


@dataclass(slots=True)
class _Log:
    arguments: dict[str, Any]
    operations: list[Operation] = field(default_factory=list)
    nudge: list[Operation] = field(default_factory=list)  # the last one, which every reset since then came after
    shown: tuple[Any, ...] | None = None  # the last result; callers tend to hold the same object anyway
    timed_out: bool = False  # interrupted half-way: its state cannot be reached again


def _shown(outcome: Outcome) -> tuple[Any, ...] | None:
    value = outcome.value
    return value if isinstance(value, ResetResult | StepResult) else None


def _same(one: tuple[Any, ...] | None, other: tuple[Any, ...] | None) -> bool:
    """Whether two results are equal in all but info."""
    return one is other or (one is not None and other is not None and one[:-1] == other[:-1])


class Journal:
    """Journals of all sessions of one program."""

    def __init__(self) -> None:
        self._logs: dict[int, _Log] = {}

    def clear(self) -> None:
        """Forget everything: the sessions died with their worker."""
        self._logs.clear()

    def replay(self) -> list[Operation]:
        """Return the operations that bring every session back, in a worker that has none of them."""
        for number in [number for number, log in self._logs.items() if log.timed_out]:
            del self._logs[number]
        operations = []
        for number, log in self._logs.items():
            operations.append(Operation("make", number, log.arguments))
            operations += [operation._replace(session=number) for operation in log.operations]
        return operations

    def verify(self, operations: Sequence[Operation], outcomes: Sequence[Outcome]) -> set[int]:
        """Compare what a replay showed with what was shown before; drop sessions that differ and return them."""
        shown: dict[int, tuple[Any, ...] | None] = {}
        for operation, outcome in zip(operations, outcomes, strict=False):
            number = operation.session
            shown.setdefault(number, None)
            shown[number] = _shown(outcome) or shown[number]
        differing = {number for number, value in shown.items() if not _same(value, self._logs[number].shown)}
        for number in differing:
            del self._logs[number]
        return differing

    def knows(self, names: Collection[str], numbers: Collection[int]) -> bool:
        """Whether operations with these names and session numbers need no closer look by :meth:`unknown`."""
        return _PLAIN.issuperset(names) and self._logs.keys() >= set(numbers)

    def unknown(self, operations: Sequence[Operation]) -> dict[int, Outcome]:
        """Return outcomes, by position, for operations on sessions that were lost or never made."""
        known = set(self._logs)
        refused = {}
        for position, operation in enumerate(operations):
            number = operation.session
            if operation.name == "make":
                known.add(number)
            elif number not in known:
                refused[position] = Outcome(
                    error=ProgramDied(f"session {number} was lost with its worker, or never made; make it first")
                )
            elif operation.name in ("copy", "sibling"):
                known.add(operation.argument)
            elif operation.name == "close":
                known.discard(number)
        return refused

    def note_all(self, operations: Sequence[Operation], outcomes: Sequence[Outcome]) -> None:
        """Take down operations that a worker carried out."""
        find, note = self._logs.get, self.note
        for operation, outcome in zip(operations, outcomes, strict=True):
            name, number, argument = operation
            value, error = outcome
            log = find(number) if error is None else None
            if log is None:
                note(operation, outcome)
            elif name == "step":
                log.operations.append(operation)
                log.shown = value
            elif name == "reset" and argument is not None:
                log.operations, log.shown, log.timed_out = [*log.nudge, operation], value, False
            else:
                note(operation, outcome)

    def note(self, operation: Operation, outcome: Outcome) -> None:
        """Take down one operation that a worker carried out."""
        name, number, argument = operation
        if name == "make":
            if outcome.error is None:
                self._logs[number] = _Log(dict(argument or {}))
            else:
                self._logs.pop(number, None)
            return
        if name == "close":
            self._logs.pop(number, None)
            return
        log = self._logs.get(number)
        if log is None:
            return
        if name == "nudge":
            log.nudge = [operation]
        if name == "sibling":  # revived with a module of its own
            if outcome.error is None:
                self._logs[argument] = _Log(log.arguments)
            return
        if name == "copy":
            if outcome.error is None:
                self._logs[argument] = _Log(log.arguments, list(log.operations), list(log.nudge), log.shown)
            return
        if name == "reset" and argument is not None:  # without a seed, what came before still matters
            log.operations[:] = log.nudge
            log.shown = None
            log.timed_out = False
        log.operations.append(operation)
        log.shown = _shown(outcome) or log.shown
        log.timed_out = log.timed_out or type(outcome.error) is ProgramTimeout
