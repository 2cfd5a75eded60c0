"""Which kind of fork server a sandbox needs: by the isolation asked for, and by what the system has."""

from __future__ import annotations

from collections.abc import Callable

from spade_envs.sandbox.process import ZygoteProcess
from spade_envs.sandbox.processes import ZygoteKey
from spade_envs.sandbox.types import IsolationLevel, Limits


def starter(minimum: IsolationLevel, limits: Limits) -> Callable[[ZygoteKey], ZygoteProcess]:
    """Return what starts a fork server for a key."""
    if minimum == "wasi":
        from spade_envs.sandbox.wasi.process import WasiZygoteProcess

        return lambda key: WasiZygoteProcess(key, limits.memory_mb)
    return lambda key: ZygoteProcess(key[1])
