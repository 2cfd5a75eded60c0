"""Validating several programs at once, each lane a process with a sandbox of its own; reports come in order."""

from __future__ import annotations

import json
import multiprocessing
import signal
from collections.abc import Generator, Iterable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
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
    idle: list[Connection] = []
    processes = []
    try:
        for _ in range(jobs):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, isolation, tuple(allow), config), daemon=True)
            process.start()
            theirs.close()  # its end of file is how we see it die, and how it sees us
            processes.append(process)
            idle.append(ours)
        yield from _share(iter(work), idle, jobs * _AHEAD)
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.join()


def _share(
    work: Iterator[tuple[Item, Task | None]], idle: list[Connection], ahead: int
) -> Iterator[tuple[Item, Report | None]]:
    """Hand sources to whichever lane is idle, and yield the reports in the order of the work."""
    items: dict[int, Item] = {}
    reports: dict[int, Report | None] = {}
    busy: dict[Connection, int] = {}
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
                _send(lane, task)
                busy[lane] = taken
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
            reports[busy.pop(ready)] = _receive(ready)
            idle.append(ready)


def _validated(task: Task, sandbox: Sandbox, allow: Sequence[str], config: ValidationConfig) -> Report:
    source, hint = task
    return validate(source, sandbox=sandbox, hint=hint, allow=allow, config=config)


def _send(lane: Connection, task: Task) -> None:
    try:
        lane.send_bytes(json.dumps(task).encode())
    except OSError as error:
        raise SandboxError("a validating process ended; is the machine out of memory?") from error


def _receive(lane: Connection) -> Report:
    try:
        answer = json.loads(lane.recv_bytes())
    except (EOFError, OSError) as error:
        raise SandboxError("a validating process ended; is the machine out of memory?") from error
    if isinstance(answer, str):
        raise SandboxError(answer)
    return Report.from_dict(answer)


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
            answer: dict[str, object] | str
            try:
                answer = _validated(task, sandbox, allow, config).to_dict()
            except SandboxError as error:
                answer = str(error)
            try:
                lane.send_bytes(json.dumps(answer).encode())
            except OSError:
                return


def _leave() -> None:
    raise SystemExit
