"""Entry point of a process that runs generated code, or forks those that do. Run as a script:
``python -s -P bootstrap.py MODULE DESCRIPTOR PARENT OPTIONS PATH...`` calls ``main(DESCRIPTOR, PARENT, OPTIONS)`` of
that module of ``spade_envs.sandbox``.

The packages ``spade_envs`` and ``spade_envs.sandbox`` are put in place bare: their ``__init__`` serve callers (a
default memory, Gymnasium registration) and have no business in a process that generated code is forked from.
"""

from __future__ import annotations

import importlib
import sys
import types
from pathlib import Path


def _bare_package(name: str, folder: Path) -> None:
    package = types.ModuleType(name)
    package.__path__ = [str(folder)]
    sys.modules[name] = package


def _main() -> None:
    module, descriptor, parent, options, *path = sys.argv[1:]
    sys.path += [entry for entry in path if entry not in sys.path]
    here = Path(__file__).resolve().parent
    _bare_package("spade_envs", here.parent)
    _bare_package("spade_envs.sandbox", here)
    entry = importlib.import_module(f"spade_envs.sandbox.{module}")
    entry.main(int(descriptor), int(parent), options.split())


if __name__ == "__main__":
    _main()
