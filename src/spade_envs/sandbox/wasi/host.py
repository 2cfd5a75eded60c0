"""The machine that the guest runs on: its memory, and the functions of ``wasi_snapshot_preview1``, of which few work.

The guest imports 43 functions. Those that read its own arguments and random bytes, and that read and write one stream,
are here, wasmtime's own tell the time, and every other one answers "not capable". None touches a file or the system.

The random bytes are the same in every guest: what is drawn from them is part of an episode.
"""

from __future__ import annotations

import ctypes
import os
import random
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

SUCCESS, BAD_DESCRIPTOR, INVALID, NOT_A_STREAM, NOT_CAPABLE = 0, 8, 28, 70, 76
"""Error numbers of WASI."""

_CLOCK = ("clock_time_get", "clock_res_get")
"""Functions that wasmtime's own implementation serves: a call into Python takes longer than a small step."""
_STREAM, _MESSAGES = 0, (1, 2)
_CHARACTER_DEVICE = 2
_MAX_VECTORS = 1_024
_MAX_STACK = 2 << 20  # the most that wasmtime grants
_PAGE = 1 << 16


class Exited(Exception):
    """The guest ended by itself; ``status`` is what it said."""

    def __init__(self, status: int) -> None:
        self.status = status
        super().__init__(f"the interpreter ended with status {status}")


class Fault(Exception):
    """The guest passed an address outside its memory."""


class Machine:
    """One guest.

    Args:
        cache: folder for the interpreter's machine code.
        memory_bytes: at most so much memory, that of the interpreter included.
        arguments: the guest's command line.
        environment: its variables.
        read: called with a size; returns bytes of the stream, none at its end.
        write: called with bytes for the stream; returns how many were taken.
        say: called with what the guest writes to its standard output and error; returns whether there are any.
    """

    def __init__(
        self,
        cache: Path,
        memory_bytes: int,
        arguments: Sequence[str],
        environment: dict[str, str],
        read: Callable[[int], bytes],
        write: Callable[[bytes], int],
        say: Callable[[bytes], bool],
    ) -> None:
        import wasmtime

        from spade_envs.sandbox.wasi import runtime

        config = wasmtime.Config()
        config.max_wasm_stack = _MAX_STACK
        engine = wasmtime.Engine(config)
        module = runtime.load(engine, cache)
        self._arguments = [argument.encode() for argument in arguments]
        self._environment = [f"{name}={value}".encode() for name, value in environment.items()]
        self._read, self._write, self._say = read, write, say
        self._random = random.Random(0)
        self._store = wasmtime.Store(engine)
        self._store.set_limits(memory_size=memory_bytes)
        self._store.set_wasi(wasmtime.WasiConfig())  # for the clock
        linker = wasmtime.Linker(engine)
        linker.allow_shadowing = True
        linker.define_wasi()
        for wanted in module.imports:
            if wanted.name not in _CLOCK:
                function = getattr(self, f"_{wanted.name}", None) or _not_capable
                linker.define_func(wanted.module, wanted.name, wanted.type, function)
        self._instance = linker.instantiate(self._store, module)
        self._memory: Any = self._instance.exports(self._store)["memory"]

    def run(self) -> None:
        """Run the guest to its end.

        Raises:
            Exited: it ended by itself.
            Exception: it did what ends a machine: overflowed its stack, or executed an invalid instruction.
        """
        start: Any = self._instance.exports(self._store)["_start"]
        start(self._store)

    # -- memory ----------------------------------------------------------------------------------------
    def _address(self, pointer: int, size: int) -> int:
        pointer &= 0xFFFFFFFF
        if size < 0 or pointer + size > self._memory.data_len(self._store):
            raise Fault(f"{size} bytes at {pointer}")
        base = ctypes.cast(self._memory.data_ptr(self._store), ctypes.c_void_p).value or 0
        return base + pointer

    def _load(self, pointer: int, size: int) -> bytes:
        return ctypes.string_at(self._address(pointer, size), size)

    def _save(self, pointer: int, data: bytes) -> None:
        ctypes.memmove(self._address(pointer, len(data)), data, len(data))

    def _vectors(self, pointer: int, count: int) -> list[tuple[int, int]]:
        if not 0 <= count <= _MAX_VECTORS:
            raise Fault(f"{count} vectors")
        return list(struct.iter_unpack("<II", self._load(pointer, 8 * count)))

    # -- what the guest can call: arguments and results as WASI's witx files state ----------------------
    def _strings(self, strings: list[bytes], pointers: int, buffer: int) -> int:
        for place, text in enumerate(strings):
            self._save(pointers + 4 * place, struct.pack("<I", buffer & 0xFFFFFFFF))
            self._save(buffer, text + b"\0")
            buffer += len(text) + 1
        return SUCCESS

    def _sizes(self, strings: list[bytes], count: int, size: int) -> int:
        self._save(count, struct.pack("<I", len(strings)))
        self._save(size, struct.pack("<I", sum(len(text) + 1 for text in strings)))
        return SUCCESS

    def _args_get(self, pointers: int, buffer: int) -> int:
        return self._strings(self._arguments, pointers, buffer)

    def _args_sizes_get(self, count: int, size: int) -> int:
        return self._sizes(self._arguments, count, size)

    def _environ_get(self, pointers: int, buffer: int) -> int:
        return self._strings(self._environment, pointers, buffer)

    def _environ_sizes_get(self, count: int, size: int) -> int:
        return self._sizes(self._environment, count, size)

    def _random_get(self, buffer: int, size: int) -> int:
        size &= 0xFFFFFFFF
        self._address(buffer, size)
        for start in range(0, size, _PAGE):
            self._save(buffer + start, self._random.randbytes(min(_PAGE, size - start)))
        return SUCCESS

    def _sched_yield(self) -> int:
        return SUCCESS

    def _proc_exit(self, status: int) -> None:
        raise Exited(status)

    def _fd_fdstat_get(self, descriptor: int, result: int) -> int:
        if descriptor not in (_STREAM, *_MESSAGES):
            return BAD_DESCRIPTOR
        self._save(result, struct.pack("<BxHxxxxQQ", _CHARACTER_DEVICE, 0, 2**64 - 1, 0))
        return SUCCESS

    def _fd_filestat_get(self, descriptor: int, result: int) -> int:
        if descriptor not in (_STREAM, *_MESSAGES):
            return BAD_DESCRIPTOR
        self._save(result, struct.pack("<QQBxxxxxxxQQQQQ", 0, 0, _CHARACTER_DEVICE, 1, 0, 0, 0, 0))
        return SUCCESS

    def _fd_prestat_get(self, _descriptor: int, _result: int) -> int:
        return BAD_DESCRIPTOR  # no folder is open

    def _fd_seek(self, *_arguments: int) -> int:
        return NOT_A_STREAM

    def _fd_read(self, descriptor: int, vectors: int, count: int, result: int) -> int:
        if descriptor != _STREAM:
            return BAD_DESCRIPTOR
        done = 0
        for pointer, size in self._vectors(vectors, count):
            self._address(pointer, size)
            if size:
                data = self._read(size)
                self._save(pointer, data)
                done += len(data)
                break  # a short read is allowed, and a second one might wait
        self._save(result, struct.pack("<I", done))
        return SUCCESS

    def _fd_write(self, descriptor: int, vectors: int, count: int, result: int) -> int:
        if descriptor != _STREAM and descriptor not in _MESSAGES:
            return BAD_DESCRIPTOR
        done = 0
        for pointer, size in self._vectors(vectors, count):
            data = self._load(pointer, size)
            if descriptor in _MESSAGES:
                if not self._say(data):
                    return BAD_DESCRIPTOR
                done += size
                continue
            taken = self._write(data)
            done += taken
            if taken < size:
                break
        self._save(result, struct.pack("<I", done))
        return SUCCESS


def _not_capable(*_arguments: int) -> int:
    return NOT_CAPABLE


def exit_status(error: BaseException) -> int:
    """Return what a process whose guest ended by ``error`` should exit with."""
    return error.status & 0xFF if isinstance(error, Exited) else os.EX_SOFTWARE if hasattr(os, "EX_SOFTWARE") else 70
