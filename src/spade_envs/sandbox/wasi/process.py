"""The caller's handles of workers whose interpreter runs under WebAssembly."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import IO

from spade_envs.sandbox.process import ZygoteProcess, start_interpreter
from spade_envs.sandbox.processes import ZygoteKey
from spade_envs.sandbox.spawning import SpawnedWorkers
from spade_envs.sandbox.types import SandboxError
from spade_envs.sandbox.wasi import runtime

_PADDING = 40_000  # for the twin: moves what is allocated later by some megabytes


class WasiZygoteProcess(ZygoteProcess):
    """A fork server whose workers run CPython under WebAssembly; ``optional`` are options of its ``main``."""

    @staticmethod
    def _start(descriptor: int, log: IO[bytes], optional: Sequence[str]) -> subprocess.Popen[bytes]:
        return start_interpreter("wasi.server", descriptor, log, optional)


def start(key: ZygoteKey, memory_mb: int, *, forks: bool) -> WasiZygoteProcess | SpawnedWorkers:
    """Start a fork server for ``key``, or what stands for one where nothing ``forks``.

    Programs may use ``memory_mb`` of memory above the interpreter's own.

    Raises:
        SandboxError: the optional packages are missing, it cannot be started, or an opt-in module was asked for.
    """
    twin, optional = key
    if optional:
        raise SandboxError(f"{', '.join(optional)} cannot be had under isolation 'wasi': there is no build of it")
    if problem := runtime.missing():
        raise SandboxError(f"isolation 'wasi' needs optional packages: {problem}")
    folder = str(runtime.cache_folder()).encode().hex()  # options may not hold spaces
    options = (str(memory_mb), str(_PADDING if twin else 0), folder)
    return WasiZygoteProcess(options) if forks else SpawnedWorkers("wasi.alone", options)
