"""``spade doctor``: versions, isolation, accelerator, and what is missing with the way to get it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import subprocess
import sys
from typing import Any

import typer

from spade_envs.cli.console import JsonOption, out, print_json, shown

CORE = ("gymnasium", "RestrictedPython", "faiss-cpu", "wordllama", "msgpack", "httpx", "jinja2", "pyarrow", "typer")
TRAIN = ("torch", "trl", "transformers", "peft", "accelerate", "datasets")
OPTIONAL = {"vllm": "vllm", "reasoning-gym": "eval", "ray": "ray", "starlette": "viewer", "wasmtime": "wasi"}


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _accelerator() -> str:
    """Name the accelerator that torch sees. Asked in a process of its own: importing torch takes seconds."""
    if importlib.util.find_spec("torch") is None:
        return "unknown (torch is not installed)"
    code = (
        "import torch\n"
        "names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]\n"
        "print('cuda: ' + ', '.join(names) if names else 'mps' if torch.backends.mps.is_available() else 'none (CPU)')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    return done.stdout.strip() or f"torch fails to load: {done.stderr.strip().splitlines()[-1:]}"


def collect() -> dict[str, Any]:
    """Return everything that ``spade doctor`` prints, JSON-safe."""
    from spade_envs import __version__
    from spade_envs.memory import Memory, default_home
    from spade_envs.sandbox.doctor import describe

    packages = {name: _version(name) for name in (*CORE, *TRAIN, *OPTIONAL)}
    missing = []
    missing += [{"package": name, "get": "pip install spade-envs"} for name in CORE if packages[name] is None]
    missing += [{"package": name, "get": "pip install 'spade-envs[train]'"} for name in TRAIN if packages[name] is None]
    missing += [
        {"package": name, "get": f"pip install 'spade-envs[{extra}]'"}
        for name, extra in OPTIONAL.items()
        if packages[name] is None
    ]
    home = default_home()
    return {
        "spade": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "accelerator": _accelerator(),
        "packages": packages,
        "sandbox": describe(),
        "memory": {"folder": str(home), "environments": len(Memory.ids(home))},
        "missing": missing,
    }


def doctor(as_json: JsonOption = False) -> None:
    """Say what is installed, how well generated code is isolated, and what is missing.

    Exit code 1 if a needed package is missing or isolation is below full.

    Example: `spade doctor --json`
    """
    facts = collect()
    needed = [row for row in facts["missing"] if row["package"] in CORE]
    bad = bool(needed) or facts["sandbox"]["level"] != "full"
    if as_json:
        print_json(facts)
        raise typer.Exit(int(bad))
    out.print(f"spade {facts['spade']} · Python {facts['python']} · {facts['platform']} · {facts['cores']} cores")
    out.print(f"accelerator  {facts['accelerator']}")
    sandbox = facts["sandbox"]
    colour = {"full": "green", "partial": "yellow"}.get(sandbox["level"], "red")
    out.print(f"isolation    [{colour}]{sandbox['level']}[/]")
    for layer, state in sandbox["layers"].items():
        out.print(
            f"  {'[green]✓[/]' if state == 'on' else '[red]✗[/]'} {layer}" + ("" if state == "on" else f": {state}")
        )
    for text in filter(None, (sandbox["error"], sandbox["advice"])):
        out.print(f"  {text}", markup=False)
    out.print(f"wasi         {sandbox['wasi']}", markup=False)
    for name, version in sandbox["opt_in"].items():
        out.print(f"opt-in       {name} {version}: --allow {name}; its memory errors are contained by the jail alone")
    out.print(f"memory       {shown(facts['memory']['folder'])} ({facts['memory']['environments']} environments)")
    out.print(
        "packages     " + ", ".join(f"{name} {version}" for name, version in facts["packages"].items() if version)
    )
    for row in facts["missing"]:
        optional = "" if row in needed else " (optional)"
        out.print(f"missing      {row['package']}{optional}: {row['get']}", markup=False)
    raise typer.Exit(int(bad))
