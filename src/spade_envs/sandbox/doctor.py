"""What the sandbox can do on this machine, for people and for ``spade doctor``."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import version
from typing import Any

from spade_envs.sandbox import landlock
from spade_envs.sandbox.allowlist import OPTIONAL
from spade_envs.sandbox.pool import Sandbox
from spade_envs.sandbox.types import Limits, SandboxError
from spade_envs.sandbox.wasi import runtime


def describe() -> dict[str, Any]:
    """Start a real worker, ask it which layers it installed, and return a JSON-safe summary. Never raises.

    Keys: ``level`` ("full", "partial", "static", or "none" when no worker starts), ``layers`` (layer → "on" or the
    reason why it is off), ``missing`` (those that are off), ``wasi`` ("installed", or what is missing for isolation
    under WebAssembly), ``opt_in`` (modules that programs may be allowed, with their versions), ``error``, ``system``,
    ``kernel``, ``machine``, ``landlock_abi``, ``python``, ``executable``, ``memory_mb`` (default limit of one program),
    ``advice``.
    """
    level, layers, missing, error = "none", {}, {}, ""
    try:
        with Sandbox(minimum_isolation="static") as sandbox:
            report = sandbox.isolation
    except SandboxError as problem:
        error = str(problem)
    else:
        level, layers, missing = report.level, dict(report.layers), report.missing
    return {
        "level": level,
        "layers": layers,
        "missing": missing,
        "wasi": runtime.missing() or "installed",
        "opt_in": {name: version(name) for name in sorted(OPTIONAL)},
        "error": error,
        "system": platform.system(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "landlock_abi": landlock.abi(),
        "python": platform.python_version(),
        "executable": sys.executable,
        "memory_mb": Limits().memory_mb,
        "advice": _advice(level),
    }


def _advice(level: str) -> str:
    if level == "full":
        return ""
    if level == "none":
        return "no worker can be started, so generated code cannot be run here"
    if platform.system() != "Linux":
        return (
            f"{platform.system()} has neither seccomp nor Landlock: run generated code in a Linux container or virtual "
            "machine, under WebAssembly (pip install 'spade-envs[wasi]', then minimum_isolation=\"wasi\"), or accept "
            f'less with minimum_isolation="{level}"'
        )
    return (
        "a layer is missing: use a kernel from 5.13 with Landlock enabled, and a container that does not forbid "
        f'seccomp filters, or accept less with minimum_isolation="{level}"'
    )
