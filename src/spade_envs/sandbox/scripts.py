"""Whole programs with standard input and output, as benchmarks of programming ask for them.

Run in the jail of a worker (:mod:`.jail`), each program in a process of its own, **without the static policy** that
environments must pass: a solution may import what it likes of the standard library, and is scored as it stands. What
holds it is the boundary alone, at the isolation that is asked for. Expected outputs never enter the process.
"""

from __future__ import annotations

import select
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import msgpack

from spade_envs.sandbox import jail
from spade_envs.sandbox.process import start_interpreter
from spade_envs.sandbox.types import IsolationLevel, SandboxError

_HEAD = struct.Struct("<I")
_START_SECONDS = 60.0
_MOST_ANSWER = 32 << 20
_CPU_CLOCK = 2
_STRETCH = 10.0  # wall-clock time over CPU time before a program that only waits is ended


class ScriptOutcome(NamedTuple):
    """What came of one input: ``text`` is the output, or in words what went wrong."""

    status: Literal["ok", "error", "timeout", "died"]
    text: str


@dataclass(frozen=True, slots=True)
class ScriptLimits:
    """Bounds on one program."""

    seconds: float = 6.0  # of CPU, for each input
    memory_mb: int = 1024
    minimum_isolation: IsolationLevel = "full"


def run_script(
    source: str, inputs: Sequence[str], limits: ScriptLimits | None = None, *, function: str = ""
) -> Iterator[ScriptOutcome]:
    """Run a program on each input in turn, yielding outcomes as they come; what is not taken is not run.

    Args:
        source: the program, unrestricted Python.
        inputs: standard inputs; with ``function``, its arguments, a line of JSON for each.
        limits: time, memory, isolation.
        function: call this (of the class ``Solution`` if there is one) and give its result as JSON.

    Raises:
        SandboxError: if the process cannot start, or isolation is below the minimum.
    """
    limits = limits or ScriptLimits()
    with _process(limits, len(inputs)) as (connection, pid):
        _send(connection, [source, function])
        for given in inputs:
            outcome = _one(connection, pid, given, limits.seconds)
            yield outcome
            if outcome.status in ("timeout", "died"):  # the process is gone; the rest has no chance
                return


@contextmanager
def _process(limits: ScriptLimits, inputs: int) -> Iterator[tuple[socket.socket, int]]:
    ours, theirs = socket.socketpair()
    with ours, tempfile.TemporaryFile() as log:
        cpu = int((limits.seconds + 1) * (inputs + 1)) + 5
        options = (str(limits.memory_mb), str(cpu), limits.minimum_isolation)
        try:
            with theirs:
                process = start_interpreter("script", theirs.fileno(), log, options)
        except OSError as error:
            raise SandboxError(f"a process for programs cannot be started: {error}") from error
        try:
            layers = _receive(ours, time.monotonic() + _START_SECONDS)
            if layers is None:
                log.seek(0)
                said = log.read().decode("utf-8", "replace").strip()[-500:]
                raise SandboxError(f"a process for programs did not start. It said: {said or 'nothing'}")
            level = jail.isolation_level(layers)
            if not jail.at_least(level, limits.minimum_isolation):
                raise SandboxError(
                    f"programs cannot be run: isolation here is {level!r}, below {limits.minimum_isolation!r}; "
                    f"`spade doctor` says what is missing"
                )
            yield ours, process.pid
        finally:
            process.kill()
            with suppress(subprocess.TimeoutExpired):
                process.wait(5.0)


def _one(connection: socket.socket, pid: int, given: str, seconds: float) -> ScriptOutcome:
    try:
        _send(connection, given)
    except OSError:
        return ScriptOutcome("died", "the process ended")
    started, cpu = time.monotonic(), _cpu_seconds(pid)
    while True:
        readable, _, _ = select.select([connection], [], [], 0.2)
        if readable:
            break
        used = _cpu_seconds(pid)
        late = used is not None and cpu is not None and used - cpu > seconds
        if late or time.monotonic() - started > seconds * _STRETCH:
            return ScriptOutcome("timeout", f"more than {seconds:g} s")
    answer = _receive(connection, time.monotonic() + _START_SECONDS)
    well_formed = isinstance(answer, list) and len(answer) == 2 and all(type(part) is str for part in answer)
    if not well_formed or answer[0] not in ("ok", "error"):
        return ScriptOutcome("died", "the process ended (memory, stack, a forbidden system call), or spoke nonsense")
    used = _cpu_seconds(pid)
    if used is not None and cpu is not None and used - cpu > seconds + 0.5:
        return ScriptOutcome("timeout", f"more than {seconds:g} s")
    return ScriptOutcome(*answer)


def _cpu_seconds(pid: int) -> float | None:
    try:
        return time.clock_gettime((~pid << 3) | _CPU_CLOCK)
    except OSError:
        return None


def _send(connection: socket.socket, value: Any) -> None:
    data = msgpack.packb(value)
    connection.settimeout(_START_SECONDS)
    connection.sendall(_HEAD.pack(len(data)) + data)


def _receive(connection: socket.socket, deadline: float) -> Any:
    """Return one message, None if the process ended, talks too much or too long."""
    try:
        head = _exactly(connection, _HEAD.size, deadline)
        (size,) = _HEAD.unpack(head)
        return msgpack.unpackb(_exactly(connection, size, deadline)) if size <= _MOST_ANSWER else None
    except (OSError, ValueError, msgpack.UnpackException):
        return None


def _exactly(connection: socket.socket, size: int, deadline: float) -> bytes:
    data = bytearray()
    while len(data) < size:
        connection.settimeout(max(0.01, deadline - time.monotonic()))
        chunk = connection.recv(min(1 << 20, size - len(data)))
        if not chunk:
            raise ConnectionError("ended")
        data += chunk
    return bytes(data)
