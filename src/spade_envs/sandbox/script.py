"""The inside of :mod:`spade_envs.sandbox.scripts`: one whole program, run on many inputs, in a locked-down process.

No static policy and no guards: benchmarks score what a model would hand in, imports and all. The boundary is the jail
alone, the same as a worker's. Modules are imported before the lock, since no file can be opened afterwards.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import os
import resource
import socket
import struct
import sys
from typing import Any, NoReturn

import msgpack

from spade_envs.sandbox import jail

MODULES = (
    *("array", "bisect", "calendar", "cmath", "collections", "collections.abc", "copy", "dataclasses", "datetime"),
    *("decimal", "enum", "fractions", "functools", "heapq", "io", "itertools", "json", "math", "numbers", "operator"),
    *("os", "queue", "random", "re", "statistics", "string", "struct", "sys", "textwrap", "time", "threading", "types"),
    *("typing", "unicodedata", "zlib", "hashlib", "abc", "contextlib", "traceback"),
)
OPTIONAL = ("numpy", "sortedcontainers")
_HEAD = struct.Struct("<I")
_MOST_OUTPUT = 16 << 20
_MOST_FRAME = 64 << 20
_DEPTH = 200_000


def main(descriptor: int, parent: int, options: list[str]) -> NoReturn:
    """Serve one program: first its source, then inputs one by one, until the caller goes away."""
    memory_mb, cpu_seconds, minimum = int(options[0]), int(options[1]), options[2]
    for name in MODULES:
        importlib.import_module(name)
    for name in OPTIONAL:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    "x".encode("idna")  # codecs load late, from files
    jail.warm()
    with contextlib.suppress(ValueError, OSError):  # deep recursion in C (json, sorting) needs stack
        hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
        resource.setrlimit(resource.RLIMIT_STACK, (64 << 20 if hard < 0 else min(64 << 20, hard), hard))
    connection = socket.socket(fileno=os.dup(descriptor))
    os.close(descriptor)
    layers = jail.lock_down(keep=connection.fileno(), parent=parent, memory_mb=memory_mb, cpu_seconds=cpu_seconds)
    _say(connection, layers)
    if not jail.at_least(jail.isolation_level(layers), minimum):  # type: ignore[arg-type]
        os._exit(70)
    source, function = _hear(connection)
    try:
        code = compile(source, "<program>", "exec")
    except BaseException as error:
        code, failure = None, _words(error)
    while True:
        given = _hear(connection)
        _say(connection, ["error", failure] if code is None else _run(code, function, given))


def _run(code: Any, function: str, given: str) -> list[str]:
    """Run once on ``given``, the standard input; or call ``function`` with arguments, one line of JSON for each."""
    sys.setrecursionlimit(_DEPTH)
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="replace", newline="\n", write_through=True)
    source = io.TextIOWrapper(io.BytesIO(given.encode()), encoding="utf-8", newline="\n")
    before = sys.stdin, sys.stdout, sys.stderr
    sys.stdin, sys.stdout, sys.stderr = source, output, io.StringIO()
    namespace: dict[str, Any] = {"__name__": "__main__" if not function else "program", "__builtins__": __builtins__}
    try:
        try:
            exec(code, namespace)
            if function:
                return ["ok", _called(namespace, function, given)]
        except SystemExit:
            pass
        output.flush()
        return ["ok", output.buffer.getvalue()[:_MOST_OUTPUT].decode("utf-8", "replace")]
    except BaseException as error:
        return ["error", _words(error)]
    finally:
        sys.stdin, sys.stdout, sys.stderr = before
        namespace.clear()
        gc.collect()


def _called(namespace: dict[str, Any], function: str, given: str) -> str:
    json = sys.modules["json"]
    arguments = [json.loads(line) for line in given.split("\n") if line.strip()]
    holder = namespace.get("Solution")
    method = getattr(holder(), function) if holder is not None else namespace[function]
    return str(json.dumps(method(*arguments)))[:_MOST_OUTPUT]


def _words(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"[:500]
    except BaseException:
        return type(error).__name__[:500]


def _say(connection: socket.socket, value: Any) -> None:
    data = msgpack.packb(value)
    view = memoryview(_HEAD.pack(len(data)) + data)
    while view:  # by write(2): the filter has no send
        view = view[os.write(connection.fileno(), view) :]


def _hear(connection: socket.socket) -> Any:
    (size,) = _HEAD.unpack(_read(connection, _HEAD.size))
    return msgpack.unpackb(_read(connection, min(size, _MOST_FRAME)))


def _read(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        try:
            chunk = os.read(connection.fileno(), size - len(data))
        except OSError:
            os._exit(1)
        if not chunk:
            os._exit(0)
        data += chunk
    return bytes(data)
