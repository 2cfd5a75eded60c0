"""Workers for systems that cannot fork (Windows): each is an interpreter of its own, started for one program.

A worker speaks the usual wire on its standard input and output. Two threads carry it between these pipes and a
socket, because nothing else can be waited for together on such systems. Starting takes as long as an interpreter
needs to import the sandbox, some tenths of a second.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import socket
import subprocess
import threading
from collections.abc import Sequence
from typing import IO

import msgpack

from spade_envs.sandbox.process import WorkerProcess, interpreter_command, interpreter_environment
from spade_envs.sandbox.types import IsolationLevel, Limits, SandboxError

_CHUNK = 1 << 16
_START_SECONDS, _STOP_SECONDS = 60.0, 5.0


class SpawnedWorkers:
    """Starts workers one by one; stands where elsewhere a fork server stands.

    Args:
        module: of ``spade_envs.sandbox``, whose ``main`` is the worker.
        options: passed on to it, before the limits and the minimum level.
    """

    def __init__(self, module: str, options: Sequence[str] = ()) -> None:
        self._module, self._options = module, tuple(options)
        self._workers: dict[int, subprocess.Popen[bytes]] = {}
        self._statuses: dict[int, int] = {}
        self._books = threading.Lock()

    @property
    def pid(self) -> int:
        """There is no process between this one and its workers."""
        return os.getpid()

    @property
    def alive(self) -> bool:
        """Always: there is no process that could end."""
        return True

    def fork(self, limits: Limits, minimum: IsolationLevel) -> WorkerProcess:
        """Start a worker that refuses to serve below the ``minimum`` level of isolation.

        Raises:
            SandboxError: it cannot be started.
        """
        self._bury()
        bounds = msgpack.packb(list(dataclasses.astuple(limits))).hex()
        command = interpreter_command(self._module, (*self._options, bounds, minimum))
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=interpreter_environment(),
                cwd=os.path.abspath(os.sep),
            )
        except OSError as error:
            raise SandboxError(f"a worker cannot be started: {error}") from error
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        assert process.stdin is not None
        assert process.stdout is not None
        threading.Thread(target=_carry_in, args=(theirs, process.stdin), daemon=True).start()
        threading.Thread(target=_carry_out, args=(process.stdout, theirs), daemon=True).start()
        with self._books:
            self._workers[process.pid] = process
        return WorkerProcess(process.pid, ours, None, self, _START_SECONDS)

    def kill(self, pid: int) -> None:
        """End a worker."""
        process = self._workers.get(pid)
        if process is not None:
            process.kill()

    def exit_status(self, pid: int) -> int | None:
        """Return how a worker ended, None if that is not known."""
        process = self._workers.get(pid)
        if process is not None:
            process.kill()
            process.wait()
            self._bury()
        return self._statuses.get(pid)

    def _bury(self) -> None:
        """Let go of the workers that have ended; their status is kept until the next one is started."""
        with self._books:
            ended = {pid: process.returncode for pid, process in self._workers.items() if process.poll() is not None}
            self._statuses = ended
            for pid in ended:
                del self._workers[pid]

    def close(self) -> None:
        """End every worker."""
        for process in self._workers.values():
            process.kill()
        for process in self._workers.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_SECONDS)
        self._bury()

    def forget(self) -> None:
        """In a forked child: leave the parent's workers alone."""
        for process in self._workers.values():
            process.returncode = 0  # not our child: neither wait for it nor warn about it
        self._workers.clear()


def _carry_in(connection: socket.socket, pipe: IO[bytes]) -> None:
    """Carry requests to the worker until the caller closes."""
    with contextlib.suppress(OSError, ValueError), pipe:
        while chunk := connection.recv(_CHUNK):
            pipe.write(chunk)
            pipe.flush()


def _carry_out(pipe: IO[bytes], connection: socket.socket) -> None:
    """Carry answers to the caller until the worker ends."""
    with contextlib.suppress(OSError, ValueError), connection, pipe:
        while chunk := os.read(pipe.fileno(), _CHUNK):
            connection.sendall(chunk)
        connection.shutdown(socket.SHUT_RDWR)
