"""Operations on many sessions of many programs, sent to all workers at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spade_envs.sandbox.types import Operation, Outcome, ProgramError

if TYPE_CHECKING:
    from spade_envs.sandbox import Program, Sandbox


def run_operations(sandbox: Sandbox, requests: Sequence[tuple[Program, Operation]]) -> list[Outcome]:
    """Run ``requests`` in one :meth:`Sandbox.run_many` and return their outcomes in the same order.

    Operations on one program keep their order; different programs run side by side.
    """
    programs: dict[int, Program] = {}
    operations: dict[int, list[Operation]] = {}
    places: list[tuple[int, int]] = []
    for program, operation in requests:
        key = id(program)
        programs[key] = program
        batch = operations.setdefault(key, [])
        places.append((key, len(batch)))
        batch.append(operation)
    if not programs:
        return []
    outcomes = sandbox.run_many([(programs[key], operations[key]) for key in programs])
    by_key = dict(zip(programs, outcomes, strict=True))
    return [by_key[key][index] for key, index in places]


def own_hints(sandbox: Sandbox, wanted: Sequence[tuple[Program, int]]) -> list[str | None]:
    """Return what each program hints at after a reset with that seed; None where it has no hint or fails."""
    requests: list[tuple[Program, Operation]] = []
    for program, seed in wanted:
        session = program.new_session_number()
        requests.append((program, Operation("make", session, {})))
        requests.append((program, Operation("reset", session, seed)))
        requests.append((program, Operation("hint", session)))
        requests.append((program, Operation("close", session)))
    return [outcome.value or None for outcome in run_operations(sandbox, requests)[2::4]]


def describe(error: ProgramError) -> str:
    """Return an error of a program as one line, ``kind: message``."""
    return f"{error.kind}: {error}"
