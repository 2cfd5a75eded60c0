"""Fork server of workers whose interpreter runs under WebAssembly.

The guest is started once, up to the point where it waits for its first frame. There, inside the call by which it
reads, this process serves as a zygote; in a child that it forked, the call returns with the child's own stream.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import msgpack

from spade_envs.sandbox import jail, results, wire
from spade_envs.sandbox.types import IsolationLevel, Limits
from spade_envs.sandbox.wasi import runtime
from spade_envs.sandbox.wasi.host import Machine, exit_status
from spade_envs.sandbox.zygote import MAX_MESSAGE, Resume, Zygote

_INTERPRETER_MB = 32  # what CPython and the modules of the sandbox take, and some room


class _Stream:
    """What the guest reads and writes: first its modules, then, in a worker, the worker's socket."""

    def __init__(self, control: socket.socket, parent: int) -> None:
        self._control, self._parent = control, parent
        modules = runtime.bundle()
        self._ready = memoryview(len(modules).to_bytes(4, "little") + modules)
        self._socket = -1

    @property
    def in_worker(self) -> bool:
        """Whether this process has become a worker."""
        return self._socket >= 0

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes; the first call that finds none waits for a fork."""
        if not self._ready and not self.in_worker:
            self._serve()
        if self._ready:
            data, self._ready = bytes(self._ready[:size]), self._ready[size:]
            return data
        return os.read(self._socket, size)

    def write(self, data: bytes) -> int:
        """Write to the caller; before there is one, nowhere."""
        return os.write(self._socket, data) if self.in_worker else len(data)

    def say(self, text: bytes) -> bool:
        """Show what the guest prints while it starts; a worker has no other stream."""
        if not self.in_worker:
            with contextlib.suppress(OSError):
                os.write(2, text)
        return not self.in_worker

    def _serve(self) -> None:
        gc.collect()
        gc.freeze()
        self._control.send(msgpack.packb(["ready", ""]))
        try:
            Zygote(self._control, self._parent, self._become_worker).serve()
        except Resume:  # in a child: go on where the guest waits
            return

    def _become_worker(self, descriptor: int, parent: int, limits: Limits, minimum: IsolationLevel) -> NoReturn:
        sys.stdin = sys.stdout = sys.stderr = None
        layers = jail.lock_down(
            keep=descriptor, parent=parent, memory_mb=limits.memory_mb + _INTERPRETER_MB, cpu_seconds=limits.cpu_seconds
        )
        layers = {jail.VIRTUAL_MACHINE: "on", **layers}
        hello = wire.encode_reply(wire.OK, {name: results.shorten(text, 500) for name, text in layers.items()})
        os.write(descriptor, hello)
        if not jail.at_least(jail.isolation_level(layers), minimum):
            os._exit(0)
        bounds = msgpack.packb(list(dataclasses.astuple(limits)))
        self._ready = memoryview(wire.HEADER.pack(len(bounds)) + bounds)
        self._socket = descriptor
        raise Resume


def main(descriptor: int, parent: int, options: Sequence[str]) -> NoReturn:
    """Start the guest and serve on the control socket; ``options``: megabytes of memory, padding, and the
    folder of compiled modules as hexadecimal digits.
    """
    memory_mb, padding, folder = options
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    control = socket.socket(fileno=descriptor)
    stream = _Stream(control, parent)
    jail.warm()
    boot = Path(__file__).with_name("boot.py").read_text(encoding="utf-8")
    environment = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "TZ": "UTC", "PADDING": padding}
    try:
        machine = Machine(
            Path(bytes.fromhex(folder).decode()),
            (int(memory_mb) + _INTERPRETER_MB) << 20,
            ["python", "-S", "-P", "-c", boot],
            environment,
            stream.read,
            stream.write,
            stream.say,
        )
        machine.run()
    except Exception as error:
        if not stream.in_worker:
            control.send(msgpack.packb(["error", f"{type(error).__name__}: {error}"[: MAX_MESSAGE // 4]]))
        os._exit(exit_status(error))
    os._exit(0)
