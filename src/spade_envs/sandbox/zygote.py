"""Fork server: a warm interpreter that never runs generated code and forks a worker for each request.

It is started with exec (:mod:`spade_envs.sandbox.bootstrap`), so nothing of the caller's memory is in it, and it
has one thread, so forking is safe. Control messages are msgpack, one request and one answer at a time:
``["fork", limits, minimum level]`` with the worker's socket attached → ``[pid, error]`` with a pidfd attached where
the system has them; ``["kill", pid]`` → ``[pid]``; ``["status", pid]`` → ``[exit status]``, negative for a signal.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import socket
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import msgpack

from spade_envs.sandbox import jail, loader, worker
from spade_envs.sandbox.types import IsolationLevel, Limits

MAX_MESSAGE = 4_096
_WATCH_SECONDS = 1.0  # how often a zygote looks whether its parent is still there
_REMEMBERED_STATUSES = 1_000


class Resume(BaseException):
    """Raised in a forked worker whose interpreter goes on below this call, with its descriptor and limits."""


class Zygote:
    """Answers control messages; ``become_worker`` is called in each child and never returns."""

    def __init__(
        self,
        control: socket.socket,
        parent: int,
        become_worker: Callable[[int, int, Limits, IsolationLevel], NoReturn] = worker.run,
    ) -> None:
        self._control = control
        self._parent = parent
        self._become_worker = become_worker
        self._children: set[int] = set()
        self._forks = 0
        self._statuses: dict[int, int] = {}

    def serve(self) -> NoReturn:
        """Serve until the parent goes away. Raises :class:`Resume` in a child that wants it."""
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        while True:
            ready = poll.poll(_WATCH_SECONDS * 1000)
            self._reap()
            if os.getppid() != self._parent:
                self._end()
            if not ready:
                continue
            message, descriptors = self._receive()
            if not message:
                self._end()
            name, *arguments = msgpack.unpackb(message)
            if name == "fork":
                self._fork(descriptors[0], *arguments)
            elif name == "kill":
                if arguments[0] in self._children:
                    os.kill(arguments[0], signal.SIGKILL)
                self._send([arguments[0]])
            else:
                self._send([self._status(arguments[0])])

    def _receive(self) -> tuple[bytes, list[int]]:
        """Return a message and what came with it; no message if the caller went away."""
        try:
            return socket.recv_fds(self._control, MAX_MESSAGE, 1)[:2]
        except OSError:  # how a datagram socket tells it on some systems
            return b"", []

    def _send(self, message: list[Any], descriptors: list[int] | None = None) -> None:
        try:
            socket.send_fds(self._control, [msgpack.packb(message)], descriptors or [])
        except OSError:  # the caller went away
            self._end()

    def _end(self) -> NoReturn:
        """End with every worker; where there is a death signal, the kernel does the same."""
        for pid in self._children:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        os._exit(0)

    def _fork(self, descriptor: int, limits: list[Any], minimum: Any) -> None:
        me = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            os.close(descriptor)
            self._send([None, str(error)])
            return
        self._forks += 1
        if pid == 0:
            try:
                self._control.close()
                _spread(self._forks)
                self._become_worker(descriptor, me, Limits(*limits), minimum)
            except Resume:
                raise
            except BaseException:
                os._exit(70)
            os._exit(70)
        os.close(descriptor)
        self._children.add(pid)
        try:
            handle = os.pidfd_open(pid)  # not reaped yet, so this is our child
        except (AttributeError, OSError):
            self._send([pid, ""])
            return
        self._send([pid, ""], [handle])
        os.close(handle)

    def _reap(self) -> None:
        while self._children:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._remember(pid, status)

    def _remember(self, pid: int, status: int) -> None:
        self._children.discard(pid)
        self._statuses[pid] = os.waitstatus_to_exitcode(status)
        if len(self._statuses) > _REMEMBERED_STATUSES:
            del self._statuses[next(iter(self._statuses))]

    def _status(self, pid: int) -> int | None:
        if pid in self._children:  # its socket is closed, so it is dying: wait for it
            os.kill(pid, signal.SIGKILL)
            self._remember(*os.waitpid(pid, 0))
        return self._statuses.get(pid)


def _spread(number: int) -> None:
    """Begin on another processor than the worker before, where there is a choice; the scheduler may move it later.

    Workers sleep and wake together with their caller. Two that begin on one processor are seen to stay there, one
    waiting for the other, while the next processor idles: what was idle for so short a time takes nothing over.
    """
    with contextlib.suppress(AttributeError, OSError):
        allowed = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {allowed[number % len(allowed)]})
        os.sched_setaffinity(0, allowed)


def main(descriptor: int, parent: int, optional: Sequence[str]) -> NoReturn:
    """Warm up, say so, and serve on the control socket ``descriptor`` until ``parent`` goes away.

    ``optional`` names the opt-in modules that programs of this zygote may ask for.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    control = socket.socket(fileno=descriptor)
    try:
        loader.warm(optional)
        loader.harden()
        loader.prepare(optional)
        jail.warm()
    except Exception as error:
        control.send(msgpack.packb(["error", f"{type(error).__name__}: {error}"[: MAX_MESSAGE // 4]]))
        raise
    gc.collect()
    gc.freeze()
    control.send(msgpack.packb(["ready", ""]))
    Zygote(control, parent).serve()
