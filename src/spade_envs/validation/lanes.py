"""Validating several programs at once, each lane a process with a sandbox of its own; reports come in order."""

from __future__ import annotations

import json
import multiprocessing
import signal
import traceback
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import TypeVar

from spade_envs.sandbox import Sandbox, SandboxError
from spade_envs.sandbox.types import IsolationLevel
from spade_envs.validation.config import ValidationConfig
from spade_envs.validation.finding import Report
from spade_envs.validation.validate import validate

Item = TypeVar("Item")
Task = tuple[str, str | None]
"""A source, and the hint that was written apart from it, if any."""
_AHEAD = 8  # programs a lane may be ahead of one that takes long
_DEATH_SECONDS = 5.0


@dataclass(frozen=True, slots=True, eq=False)
class _Lane:
    """A process that validates, and our end of the line to it."""

    process: SpawnProcess
    connection: Connection

    def send(self, task: Task) -> None:
        """Hand over a task."""
        try:
            self.connection.send_bytes(json.dumps(task).encode())
        except OSError as error:
            raise self._ended() from error

    def receive(self) -> Report:
        """Return the report; a text instead of one says what failed."""
        try:
            answer = json.loads(self.connection.recv_bytes())
        except (EOFError, OSError) as error:
            raise self._ended() from error
        if isinstance(answer, str):
            raise SandboxError(answer)
        return Report.from_dict(answer)

    def _ended(self) -> SandboxError:
        self.process.join(_DEATH_SECONDS)
        code = self.process.exitcode
        if code is not None and code < 0:
            return SandboxError(f"a validating process was ended by signal {-code}; is the machine out of memory?")
        return SandboxError(f"a validating process ended with exit code {code}")


def validate_in_order(
    work: Iterable[tuple[Item, Task | None]],
    *,
    jobs: int,
    isolation: IsolationLevel,
    allow: Sequence[str],
    config: ValidationConfig,
) -> Generator[tuple[Item, Report | None], None, None]:
    """Validate the task of each item, ``jobs`` at once; None for items without one. Reads ahead a little only.

    Raises:
        SandboxError: if the sandbox itself fails, in any lane.
        ValueError: if ``jobs`` is not positive.
    """
    if jobs < 1:
        raise ValueError(f"jobs must be at least 1, got {jobs}")
    if jobs == 1:
        with Sandbox(minimum_isolation=isolation) as sandbox:
            for item, task in work:
                yield item, None if task is None else _validated(task, sandbox, allow, config)
        return
    context = multiprocessing.get_context("spawn")
    lanes: list[_Lane] = []
    try:
        for _ in range(jobs):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, isolation, tuple(allow), config), daemon=True)
            process.start()
            theirs.close()  # its end of file is how we see it die, and how it sees us
            lanes.append(_Lane(process, ours))
        yield from _share(iter(work), list(lanes), jobs * _AHEAD)
    finally:
        for lane in lanes:
            lane.process.terminate()
        for lane in lanes:
            lane.process.join()


def _share(
    work: Iterator[tuple[Item, Task | None]], idle: list[_Lane], ahead: int
) -> Iterator[tuple[Item, Report | None]]:
    """Hand sources to whichever lane is idle, and yield the reports in the order of the work."""
    items: dict[int, Item] = {}
    reports: dict[int, Report | None] = {}
    busy: dict[Connection, tuple[_Lane, int]] = {}
    taken, given, more = 0, 0, True
    while True:
        while more and idle and taken - given < ahead:
            entry = next(work, None)
            if entry is None:
                more = False
                break
            items[taken], task = entry
            if task is None:
                reports[taken] = None
            else:
                lane = idle.pop()
                lane.send(task)
                busy[lane.connection] = lane, taken
            taken += 1
        while given in reports:
            yield items.pop(given), reports.pop(given)
            given += 1
        if not busy:
            if not more and given == taken:
                return
            continue
        for ready in wait(list(busy)):
            assert isinstance(ready, Connection)
            lane, number = busy.pop(ready)
            reports[number] = lane.receive()
            idle.append(lane)


def _validated(task: Task, sandbox: Sandbox, allow: Sequence[str], config: ValidationConfig) -> Report:
    source, hint = task
    return validate(source, sandbox=sandbox, hint=hint, allow=allow, config=config)


def _serve(lane: Connection, isolation: IsolationLevel, allow: Sequence[str], config: ValidationConfig) -> None:
    """A lane: sources in, reports out, until the other end closes. A text is the sandbox's failure."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one who started us ends us
    signal.signal(signal.SIGTERM, lambda *_: _leave())
    with Sandbox(minimum_isolation=isolation) as sandbox:
        while True:
            try:
                task = json.loads(lane.recv_bytes())
            except (EOFError, OSError):
                return
            try:
                answer = json.dumps(_validated(task, sandbox, allow, config).to_dict())
            except SandboxError as error:
                answer = json.dumps(str(error))
            except Exception as error:
                at = traceback.extract_tb(error.__traceback__)[-1]
                said = f"validating failed with {type(error).__name__}: {error} ({at.filename}:{at.lineno})"
                answer = json.dumps(said)
            try:
                lane.send_bytes(answer.encode())
            except OSError:
                return


def _leave() -> None:
    raise SystemExit
