"""Where a sandbox gets its workers from: by the isolation asked for, and by what the system has."""

from __future__ import annotations

import os
from collections.abc import Callable

from spade_envs.sandbox.process import ZygoteProcess
from spade_envs.sandbox.processes import ZygoteKey
from spade_envs.sandbox.spawning import SpawnedWorkers
from spade_envs.sandbox.types import IsolationLevel, Limits

FORKS = hasattr(os, "fork")
"""Whether this system can fork. Windows cannot: every worker is an interpreter of its own."""


def starter(minimum: IsolationLevel, limits: Limits) -> Callable[[ZygoteKey], ZygoteProcess | SpawnedWorkers]:
    """Return what starts a fork server for a key, or what stands for one."""
    if minimum == "wasi":
        from spade_envs.sandbox.wasi import process

        return lambda key: process.start(key, limits.memory_mb, forks=FORKS)
    return lambda key: ZygoteProcess(key[1]) if FORKS else SpawnedWorkers("spawned", key[1])
