"""Inside the guest: warm up like a fork server, wait for the first frame, be a worker.

The stream is descriptor 0, in both directions. The first frame after warming up holds the limits.
"""

from __future__ import annotations

import gc
import os
import random
import sys
from typing import NoReturn

import msgpack

from spade_envs.sandbox import loader, results, wire, worker
from spade_envs.sandbox.types import Limits

_STREAM = 0


def main() -> NoReturn:
    """Warm up, take the limits, serve."""
    # Another layout of memory for the twin: what depends on addresses then differs between the two.
    padding = [bytearray(n) for n in range(0, int(os.environ["PADDING"]), 16)]
    loader.warm()
    loader.harden()
    loader.prepare()
    gc.collect()
    gc.freeze()
    limits = Limits(*msgpack.unpackb(_frame()))  # the host forks here
    sys.stdin = sys.stdout = sys.stderr = None
    random.seed(0)
    del padding
    serving = worker.Worker(_STREAM, limits)
    try:
        serving.serve()
    except BaseException as error:  # ours, not the program's
        serving.say(wire.DYING, results.shorten(f"{type(error).__name__}: {error}", wire.MAX_MESSAGE))
        raise


def _frame() -> bytes:
    (size,) = wire.HEADER.unpack(_read(wire.HEADER.size))
    return _read(size)


def _read(size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        parts += os.read(_STREAM, size - len(parts))
    return bytes(parts)
