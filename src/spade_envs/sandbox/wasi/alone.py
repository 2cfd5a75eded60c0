"""A worker under WebAssembly that was started for itself, where nothing can be forked: the wire is its standard
input and output, as for :mod:`spade_envs.sandbox.spawned`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import msgpack

from spade_envs.sandbox.spawned import INPUT, OUTPUT, Deadline, binary_streams
from spade_envs.sandbox.types import IsolationLevel, Limits
from spade_envs.sandbox.wasi.host import exit_status
from spade_envs.sandbox.wasi.stream import Stream, machine, no_layers


class _Piped(Stream):
    def __init__(self, limits: Limits, minimum: IsolationLevel) -> None:
        super().__init__()
        self._limits, self._minimum = limits, minimum
        self._deadline = Deadline(limits)

    def read(self, size: int) -> bytes:
        self._deadline.stop()
        data = super().read(size)
        self._deadline.start()
        return data

    def write(self, data: bytes) -> int:
        self._deadline.start()
        return super().write(data)

    def become_worker(self) -> None:
        self.connect(no_layers(), self._limits, self._minimum, INPUT, OUTPUT)


def main(_descriptor: int, _parent: int, options: Sequence[str]) -> NoReturn:
    """Start the guest and serve; ``options``: as :func:`machine` takes them, the limits, the minimum level."""
    memory_mb, padding, folder, bounds, minimum = options
    sys.stdin = sys.stdout = sys.stderr = None
    binary_streams()
    stream = _Piped(Limits(*msgpack.unpackb(bytes.fromhex(bounds))), minimum)  # type: ignore[arg-type]
    try:
        machine(stream, int(memory_mb), padding, folder).run()
    except Exception as error:
        os._exit(exit_status(error))
    os._exit(0)
