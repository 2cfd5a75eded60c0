"""A worker that was started for itself, where nothing can be forked: the wire is its standard input and output."""

from __future__ import annotations

import faulthandler
import gc
import importlib
import os
import platform
import random
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import msgpack

from spade_envs.sandbox import jail, loader, results, wire, worker
from spade_envs.sandbox.types import Limits

INPUT, OUTPUT = 0, 1
"""Descriptors of the wire."""
_PATIENCE = 10  # times what the caller grants one operation


class Deadline:
    """Ends this process if it neither reads nor writes for long: its caller, who would have, must be gone."""

    def __init__(self, limits: Limits) -> None:
        self._seconds = _PATIENCE * (max(limits.load_seconds, limits.soft_seconds) + limits.hard_seconds)
        self._nowhere = os.open(os.devnull, os.O_WRONLY)

    def start(self) -> None:
        """Count from now; kept by a thread that needs no interpreter lock."""
        faulthandler.dump_traceback_later(self._seconds, exit=True, file=self._nowhere)

    def stop(self) -> None:
        """Do not count: a worker may wait for requests as long as it likes."""
        faulthandler.cancel_dump_traceback_later()


class _PipeWorker(worker.Worker):
    def __init__(self, limits: Limits) -> None:
        super().__init__(INPUT, limits)
        self._deadline = Deadline(limits)

    def _read(self, size: int) -> bytes:
        self._deadline.stop()
        data = super()._read(size)
        self._deadline.start()
        return data

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(OUTPUT, view) :]
        self._deadline.start()


def main(_descriptor: int, _parent: int, options: Sequence[str]) -> NoReturn:
    """Warm up, report the layers, serve; ``options``: opt-in modules, then the limits and the minimum level."""
    *optional, bounds, minimum = options
    sys.stdin = sys.stdout = sys.stderr = None
    binary_streams()
    loader.warm(optional)
    loader.harden()
    loader.prepare(optional)
    serving = _PipeWorker(Limits(*msgpack.unpackb(bytes.fromhex(bounds))))
    layers = dict.fromkeys(jail.LAYERS, f"not offered by {platform.system()}")
    try:
        serving.say(wire.OK, layers)
        if not jail.at_least(jail.isolation_level(layers), minimum):  # type: ignore[arg-type]
            os._exit(0)
        random.seed(0)
        gc.collect()
        gc.freeze()
        serving.serve()
    except BaseException as error:  # ours, not the program's
        serving.say(wire.DYING, results.shorten(f"{type(error).__name__}: {error}", wire.MAX_MESSAGE))
        raise


def binary_streams() -> None:
    """Switch off the translation of line ends, where there is one."""
    try:
        msvcrt: Any = importlib.import_module("msvcrt")
    except ImportError:
        return
    for descriptor in (INPUT, OUTPUT):
        msvcrt.setmode(descriptor, os.O_BINARY)  # type: ignore[attr-defined]
