"""The first code that runs inside the guest, by ``python -c``: take the modules from the stream, then start.

The stream holds a 4-byte length and the ``marshal`` of name → (is a package, source). There are no files.
"""

import importlib.machinery
import marshal
import os
import sys
from typing import Any


def _read(size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        chunk = os.read(0, size - len(parts))
        if not chunk:
            sys.exit("the stream of modules ended early")
        parts += chunk
    return bytes(parts)


class _Modules:
    """Finder and loader of what came with the stream."""

    def __init__(self, modules: dict[str, tuple[bool, str]]) -> None:
        self._modules = modules

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in self._modules:
            return None
        loader: Any = self
        return importlib.machinery.ModuleSpec(name, loader, is_package=self._modules[name][0])

    def create_module(self, spec: Any) -> None:
        """Let the import system make it."""

    def exec_module(self, module: Any) -> None:
        source = self._modules[module.__name__][1]
        exec(compile(source, f"<{module.__name__}>", "exec", dont_inherit=True), module.__dict__)


sys.meta_path.insert(0, _Modules(marshal.loads(_read(int.from_bytes(_read(4), "little")))))

from spade_envs.sandbox.wasi import guest  # noqa: E402

guest.main()
