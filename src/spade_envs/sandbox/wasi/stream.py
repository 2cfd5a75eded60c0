"""What a guest reads and writes: first its modules, then, once this process is a worker, the caller's wire."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import platform
from pathlib import Path

import msgpack

from spade_envs.sandbox import jail, results, wire
from spade_envs.sandbox.types import IsolationLevel, Limits
from spade_envs.sandbox.wasi import runtime
from spade_envs.sandbox.wasi.host import Machine

INTERPRETER_MB = 32  # what CPython and the modules of the sandbox take, and some room
_MAX_TEXT = 500


class Stream:
    """The stream of one guest. Subclasses say how this process becomes a worker."""

    def __init__(self) -> None:
        modules = runtime.bundle()
        self._ready = memoryview(len(modules).to_bytes(4, "little") + modules)
        self._input = self._output = -1

    @property
    def in_worker(self) -> bool:
        """Whether this process has become a worker."""
        return self._input >= 0

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes. The call that finds the modules taken makes this process a worker."""
        if not self._ready and not self.in_worker:
            self.become_worker()
        if self._ready:
            data, self._ready = bytes(self._ready[:size]), self._ready[size:]
            return data
        return os.read(self._input, size)

    def write(self, data: bytes) -> int:
        """Write to the caller; before there is one, nowhere."""
        return os.write(self._output, data) if self.in_worker else len(data)

    def say(self, text: bytes) -> bool:
        """Show what the guest prints while it starts; a worker has no other stream."""
        if not self.in_worker:
            with contextlib.suppress(OSError):
                os.write(2, text)
        return not self.in_worker

    def become_worker(self) -> None:
        """Return when this process is one, after a call of :meth:`connect`."""
        raise NotImplementedError

    def connect(
        self, layers: dict[str, str], limits: Limits, minimum: IsolationLevel, incoming: int, outgoing: int
    ) -> None:
        """Report the layers, then let the guest read and write these descriptors; it is told the limits first."""
        layers = {jail.VIRTUAL_MACHINE: "on", **layers}
        hello = {name: results.shorten(text, _MAX_TEXT) for name, text in layers.items()}
        os.write(outgoing, wire.encode_reply(wire.OK, hello))
        if not jail.at_least(jail.isolation_level(layers), minimum):
            os._exit(0)
        bounds = msgpack.packb(list(dataclasses.astuple(limits)))
        self._ready = memoryview(wire.HEADER.pack(len(bounds)) + bounds)
        self._input, self._output = incoming, outgoing


def no_layers() -> dict[str, str]:
    """Return the report of a process that is in no jail."""
    return dict.fromkeys(jail.LAYERS, f"not offered by {platform.system()}")


def machine(stream: Stream, memory_mb: int, padding: str, folder: str) -> Machine:
    """Return the guest, ready to run. ``folder``: of compiled modules, in hexadecimal digits."""
    boot = Path(__file__).with_name("boot.py").read_text(encoding="utf-8")
    return Machine(
        Path(bytes.fromhex(folder).decode()),
        (memory_mb + INTERPRETER_MB) << 20,
        ["python", "-S", "-P", "-c", boot],
        {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "TZ": "UTC", "PADDING": padding},
        stream.read,
        stream.write,
        stream.say,
    )
