"""A loaded program and its sessions, as callers see them."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from spade_envs.sandbox.processes import Seat, ZygoteKey
from spade_envs.sandbox.replay import Journal
from spade_envs.sandbox.types import Operation, Outcome, ProgramInfo, ResetResult, StepResult

if TYPE_CHECKING:
    from spade_envs.sandbox.pool import Sandbox


class Program:
    """One generated program, loaded in a worker process of its own. Made by :meth:`Sandbox.open`.

    The worker may be stopped when many programs are in use; the next operation starts another one and brings the
    sessions back by playing them again. When the worker *dies*, its sessions are lost: each operation on them
    gives :class:`ProgramDied` until a new ``make``. A context manager that closes itself.
    """

    def __init__(self, sandbox: Sandbox, source: str, allow: Sequence[str], twin: bool, shared: bool = False) -> None:
        self.source = source
        self.allow = tuple(sorted(set(allow)))
        self.twin = twin
        self.shared = shared
        self.info = ProgramInfo("", False, False, False)
        self.strikes = 0  # time-outs and deaths so far
        self.closed = False
        self._sandbox = sandbox
        self._numbers = itertools.count(1)
        self.journal = Journal()
        self.seat = Seat()
        weakref.finalize(self, self.seat.vacate).atexit = False

    def __repr__(self) -> str:
        return f"<Program {self.info.class_name}, {len(self.source)} characters>"

    @property
    def quarantined(self) -> bool:
        """Whether it timed out or died too often and is not run any more."""
        return self.strikes >= self._sandbox.limits.quarantine_after

    @property
    def zygote_key(self) -> ZygoteKey:
        """Which zygote its workers are forked from."""
        return self.twin, self.allow

    def run(self, operations: Sequence[Operation]) -> list[Outcome]:
        """Carry out ``operations`` in order; a program's errors are outcomes, never exceptions.

        Raises:
            SandboxError: the machinery failed.
        """
        return self._sandbox.run_many([(self, operations)])[0]

    def new_session_number(self) -> int:
        """Return a number that no session of this program has had."""
        return next(self._numbers)

    def session(self, **arguments: Any) -> Session:
        """Make an instance with these constructor arguments.

        Raises:
            ProgramError: the constructor failed.
        """
        number = self.new_session_number()
        self.run([Operation("make", number, arguments)])[0].unwrap()
        return Session(self, number)

    def close(self) -> None:
        """Stop the worker. Sessions are gone; closing twice is harmless."""
        self.closed = True
        self._sandbox.vacate(self)
        self.journal.clear()

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Session:
    """One instance of a program. Every method raises a :class:`ProgramError` when the program fails."""

    def __init__(self, program: Program, number: int) -> None:
        self.program = program
        self.number = number

    def __repr__(self) -> str:
        return f"<Session {self.number} of {self.program!r}>"

    def _run(self, name: str, argument: Any = None) -> Any:
        return self.program.run([Operation(name, self.number, argument)])[0].unwrap()

    def reset(self, seed: int) -> ResetResult:
        """Start an episode; the same seed gives the same episode."""
        result: ResetResult = self._run("reset", seed)
        return result

    def step(self, action: str) -> StepResult:
        """Take one action."""
        result: StepResult = self._run("step", action)
        return result

    def hint(self) -> str | None:
        """Return the program's hint for the running episode, None if it offers none."""
        text: str | None = self._run("hint")
        return text

    def solution(self) -> list[str] | None:
        """Return actions that win from here, None if the program offers none."""
        actions: list[str] | None = self._run("solution")
        return actions

    def tools(self) -> list[dict[str, Any]]:
        """Return OpenAI function schemas, an empty list if the program has no tools."""
        schemas: list[dict[str, Any]] = self._run("tools")
        return schemas

    def copy(self) -> Session:
        """Return an independent copy in the same state, random generator included."""
        number = self.program.new_session_number()
        self._run("copy", number)
        return Session(self.program, number)

    def close(self) -> None:
        """Drop the instance. Harmless when the program is closed or its worker died."""
        if not self.program.closed:
            self.program.run([Operation("close", self.number)])
