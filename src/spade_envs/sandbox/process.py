"""Handles of the processes on the caller's side: one zygote, and the workers it forks."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Protocol

import msgpack

from spade_envs.sandbox.types import IsolationLevel, Limits, SandboxError

_START_SECONDS, _ANSWER_SECONDS, _STOP_SECONDS = 60.0, 20.0, 5.0
_MAX_MESSAGE = 4_096
_MAX_ERROR_CHARS = 2_000
_CPU_CLOCK = 2  # of a process, all its threads together
# What some installations need so that the interpreter starts at all; everything else of the environment stays out.
_PASSED_ON = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONHOME", "SYSTEMROOT")
_ENVIRONMENT = {
    "PATH": os.defpath,
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "PYTHONUTF8": "1",
    "PYTHONHASHSEED": "0",  # the order of sets of strings is part of an episode
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


def interpreter_command(module: str, options: Sequence[str], descriptor: int = 0) -> list[str]:
    """Return the command line of a clean interpreter that calls ``main`` of a module of the sandbox."""
    script = Path(__file__).with_name("bootstrap.py")
    path = [entry for entry in sys.path if os.path.isabs(entry) and os.path.exists(entry)]
    start = [sys.executable, "-s", "-P", str(script), module, str(descriptor), str(os.getpid())]
    return [*start, " ".join(options), *path]


def interpreter_environment() -> dict[str, str]:
    """Return the environment of such an interpreter: nothing of this process's but what it cannot start without."""
    return _ENVIRONMENT | {name: os.environ[name] for name in _PASSED_ON if name in os.environ}


def start_interpreter(module: str, descriptor: int, log: IO[bytes], options: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start such an interpreter with exec; it inherits ``descriptor`` and nothing else."""
    return subprocess.Popen(
        interpreter_command(module, options, descriptor),
        pass_fds=[descriptor],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=log,
        env=interpreter_environment(),
        cwd="/",
    )


class Origin(Protocol):
    """Where a worker comes from: a fork server, or what starts it where there is none."""

    @property
    def alive(self) -> bool:
        """Whether it can still start workers, and those that it has started can still run."""

    def kill(self, pid: int) -> None:
        """End a worker."""

    def exit_status(self, pid: int) -> int | None:
        """Return how a worker ended (negative: a signal), None if that is not known."""


class WorkerProcess:
    """A forked worker: its socket, and a handle that cannot hit another process which got the same number."""

    def __init__(
        self, pid: int, connection: socket.socket, handle: int | None, zygote: Origin, start_seconds: float = 0.0
    ) -> None:
        self.pid = pid
        self.socket = connection
        self.buffer = bytearray()  # bytes of an answer that is not complete yet
        self.greeted = False  # its isolation report was read
        self.start_seconds = start_seconds  # that may pass before, beyond the limits
        self._handle = handle
        self._zygote = zygote
        self._owner = os.getpid()

    def kill(self) -> None:
        """End the process at once. Harmless when it is gone already, or when it is a forked parent's."""
        if self._owner == os.getpid() and self.socket.fileno() >= 0:
            if self._handle is not None:
                with contextlib.suppress(OSError):
                    signal.pidfd_send_signal(self._handle, signal.SIGKILL)
            else:
                self._zygote.kill(self.pid)
        self.forget()

    def forget(self) -> None:
        """Close the descriptors and leave the process alone (it ends when the last copy of its socket closes)."""
        self.socket.close()
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    @property
    def orphaned(self) -> bool:
        """Whether its zygote ended, which ends every worker: not this worker's fault."""
        return not self._zygote.alive

    def cpu_seconds(self) -> float | None:
        """Return the CPU time used so far, None where the system does not tell."""
        if not sys.platform.startswith("linux"):
            return None
        try:
            return time.clock_gettime((~self.pid << 3) | _CPU_CLOCK)  # what clock_getcpuclockid(3) computes
        except OSError:
            return None

    def is_waiting(self) -> bool:
        """Return whether the process sleeps, rather than computing or waiting for a processor."""
        try:
            with open(f"/proc/{self.pid}/stat", "rb") as stat:
                return stat.read().rpartition(b") ")[2][:1] == b"S"
        except OSError:
            return False

    def cause_of_death(self) -> str:
        """Return in words how the process ended."""
        status = self._zygote.exit_status(self.pid)
        if status is None:
            return "the worker ended"
        if status >= 0:
            return f"the worker exited with status {status}"
        with contextlib.suppress(ValueError):
            name = signal.Signals(-status).name
            meaning = {
                "SIGSEGV": "stack overflow or memory error in C code",
                "SIGABRT": "fatal error of the interpreter",
                "SIGSYS": "forbidden system call",
                "SIGKILL": "CPU time used up, or killed by the system for want of memory",
                "SIGXCPU": "CPU time used up",
            }.get(name, "")
            return f"the worker was ended by {name}" + (f" ({meaning})" if meaning else "")
        return f"the worker was ended by signal {-status}"


class ZygoteProcess:
    """A fork server of its own, started with exec, warmed with the opt-in modules ``optional``.

    Raises:
        SandboxError: it cannot be started.
    """

    def __init__(self, optional: Sequence[str] = ()) -> None:
        if os.name != "posix":
            raise SandboxError(
                "the sandbox needs a POSIX system (Linux for full isolation). On Windows, run it inside WSL 2."
            )
        if not sys.executable:
            raise SandboxError("sys.executable is empty: the sandbox does not know which Python to start")
        self._failed = False
        self._asking = threading.Lock()
        self._condemned: list[int] = []  # pids to kill when the control socket is free
        kind = socket.SOCK_SEQPACKET if sys.platform.startswith("linux") else socket.SOCK_DGRAM
        self._control, theirs = socket.socketpair(socket.AF_UNIX, kind)
        with theirs, tempfile.TemporaryFile() as log:
            try:
                self._process = self._start(theirs.fileno(), log, optional)
            except OSError as error:
                self._control.close()
                raise SandboxError(f"cannot start {sys.executable}: {error}") from error
            theirs.close()
            try:
                self._wait_until_ready(log)
            except BaseException:
                self.close()
                raise

    @staticmethod
    def _start(descriptor: int, log: IO[bytes], optional: Sequence[str]) -> subprocess.Popen[bytes]:
        return start_interpreter("zygote", descriptor, log, optional)

    def _wait_until_ready(self, log: IO[bytes]) -> None:
        self._control.settimeout(_START_SECONDS)
        try:
            message = self._control.recv(_MAX_MESSAGE)
        except OSError as error:
            raise SandboxError(f"the sandbox's fork server did not start: {error}. {self._said(log)}") from error
        if not message:
            raise SandboxError(f"the sandbox's fork server ended while starting. {self._said(log)}")
        state, text = msgpack.unpackb(message)
        if state != "ready":
            raise SandboxError(f"the sandbox's fork server could not warm up: {text}. {self._said(log)}".rstrip(". "))

    @staticmethod
    def _said(log: IO[bytes]) -> str:
        log.seek(0)
        text = log.read().decode("utf-8", "replace").strip()
        return f"It said: {text[-_MAX_ERROR_CHARS:]}" if text else ""

    @property
    def pid(self) -> int:
        """Process id of the fork server."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the fork server runs and answers."""
        return not self._failed and self._process.poll() is None

    def fork(self, limits: Limits, minimum: IsolationLevel) -> WorkerProcess:
        """Start a worker that refuses to serve below the ``minimum`` level of isolation.

        Raises:
            SandboxError: the zygote does not answer.
        """
        ours, theirs = socket.socketpair()
        try:
            with theirs, self._asking:
                request = ["fork", list(dataclasses.astuple(limits)), minimum]
                self._execute_condemned()
                (pid, error), descriptors = self._ask(request, [theirs.fileno()])
            if pid is None:
                raise SandboxError(f"cannot fork a worker: {error}")
        except BaseException:
            ours.close()
            raise
        ours.setblocking(False)
        return WorkerProcess(pid, ours, descriptors[0] if descriptors else None, self)

    def kill(self, pid: int) -> None:
        """End a worker for which there is no pidfd. May be called by a finaliser, in the middle of anything."""
        self._condemned.append(pid)
        if self._asking.acquire(blocking=False):  # otherwise the next fork does it
            try:
                with contextlib.suppress(SandboxError):
                    self._execute_condemned()
            finally:
                self._asking.release()

    def _execute_condemned(self) -> None:
        while self._condemned:
            self._ask(["kill", self._condemned.pop()])

    def exit_status(self, pid: int) -> int | None:
        """Return how a worker ended (negative: a signal), None if that is not known."""
        try:
            with self._asking:
                (status,), _ = self._ask(["status", pid])
        except SandboxError:
            return None
        return status if type(status) is int else None

    def _ask(self, message: list[Any], descriptors: list[int] | None = None) -> tuple[list[Any], list[int]]:
        try:
            self._control.settimeout(_ANSWER_SECONDS)
            socket.send_fds(self._control, [msgpack.packb(message)], descriptors or [])
            answer, received, _, _ = socket.recv_fds(self._control, _MAX_MESSAGE, 1)
        except BaseException as error:
            self._failed = True  # a question without its answer: nothing later would match
            if isinstance(error, OSError):
                raise SandboxError(f"the sandbox's fork server does not answer: {error}") from error
            raise
        if not answer:
            self._failed = True
            raise SandboxError("the sandbox's fork server has ended")
        return msgpack.unpackb(answer), received

    def close(self) -> None:
        """End the zygote, and with it every worker."""
        self._control.close()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def forget(self) -> None:
        """In a forked child: close the descriptors, leave the parent's zygote alone."""
        self._control.close()
        self._process.returncode = 0  # not our child: neither wait for it nor warn about it
