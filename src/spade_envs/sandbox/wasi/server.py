"""Fork server of workers whose interpreter runs under WebAssembly.

The guest is started once, up to the point where it waits for its first frame. There, inside the call by which it
reads, this process serves as a zygote; in a child that it forked, the call returns with the child's own stream.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
from collections.abc import Sequence
from typing import NoReturn

import msgpack

from spade_envs.sandbox import jail
from spade_envs.sandbox.types import IsolationLevel, Limits
from spade_envs.sandbox.wasi.host import exit_status
from spade_envs.sandbox.wasi.stream import INTERPRETER_MB, Stream, machine
from spade_envs.sandbox.zygote import MAX_MESSAGE, Resume, Zygote


class _Forked(Stream):
    def __init__(self, control: socket.socket, parent: int) -> None:
        super().__init__()
        self._control, self._parent = control, parent

    def become_worker(self) -> None:
        gc.collect()
        gc.freeze()
        self._control.send(msgpack.packb(["ready", ""]))
        try:
            Zygote(self._control, self._parent, self._in_child).serve()
        except Resume:  # in a child: go on where the guest waits
            return

    def _in_child(self, descriptor: int, parent: int, limits: Limits, minimum: IsolationLevel) -> NoReturn:
        sys.stdin = sys.stdout = sys.stderr = None
        layers = jail.lock_down(
            keep=descriptor, parent=parent, memory_mb=limits.memory_mb + INTERPRETER_MB, cpu_seconds=limits.cpu_seconds
        )
        self.connect(layers, limits, minimum, descriptor, descriptor)
        raise Resume


def main(descriptor: int, parent: int, options: Sequence[str]) -> NoReturn:
    """Start the guest and serve on the control socket; ``options``: as :func:`machine` takes them."""
    memory_mb, padding, folder = options
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    control = socket.socket(fileno=descriptor)
    stream = _Forked(control, parent)
    jail.warm()
    try:
        machine(stream, int(memory_mb), padding, folder).run()
    except Exception as error:
        if not stream.in_worker:
            control.send(msgpack.packb(["error", f"{type(error).__name__}: {error}"[: MAX_MESSAGE // 4]]))
        os._exit(exit_status(error))
    os._exit(0)
