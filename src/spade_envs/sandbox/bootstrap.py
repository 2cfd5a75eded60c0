"""Entry point of the zygote, run as a script: ``python -s -P bootstrap.py DESCRIPTOR PARENT OPTIONAL PATH...``.

The packages ``spade_envs`` and ``spade_envs.sandbox`` are put in place bare: their ``__init__`` serve callers (a
default memory, Gymnasium registration) and have no business in a process that generated code is forked from.
"""

from __future__ import annotations

import sys
import types
from pathlib import Path


def _bare_package(name: str, folder: Path) -> None:
    package = types.ModuleType(name)
    package.__path__ = [str(folder)]
    sys.modules[name] = package


def _main() -> None:
    descriptor, parent, optional, *path = sys.argv[1:]
    sys.path += [entry for entry in path if entry not in sys.path]
    here = Path(__file__).resolve().parent
    _bare_package("spade_envs", here.parent)
    _bare_package("spade_envs.sandbox", here)
    from spade_envs.sandbox import zygote

    zygote.main(int(descriptor), int(parent), optional.split())


if __name__ == "__main__":
    _main()
