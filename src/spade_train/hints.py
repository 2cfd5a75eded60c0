"""The hints that programs themselves give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spade_envs.batching import run_operations
from spade_envs.sandbox.types import Operation

if TYPE_CHECKING:
    from spade_envs.sandbox import Program, Sandbox


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
