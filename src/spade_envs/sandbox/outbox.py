"""Answers on their way from a worker to the caller, put together in frames that are worth a system call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spade_envs.sandbox import columns, wire

_ROW_BYTES = 64  # of a row, apart from its observation


class Outbox:
    """Collects answers; :meth:`flush` sends them in order. Results of the same kind in a row go by columns.

    Args:
        write: sends bytes.
        cap: largest frame in bytes.
    """

    __slots__ = ("_cap", "_frames", "_kind", "_rows", "_write", "waiting")

    def __init__(self, write: Callable[[bytes], None], cap: int) -> None:
        self._write, self._cap = write, cap
        self._frames: list[bytes] = []
        self._rows: list[list[Any]] = []
        self._kind = ""
        self.waiting = 0  # bytes, about

    def put_row(self, kind: str, row: list[Any]) -> None:
        """Add what a ``kind`` ("step" or "reset") gave, as :mod:`spade_envs.sandbox.results` returns it."""
        rows = self._rows
        if kind != self._kind or len(rows) == columns.MAX_ROWS:
            self._close_run()
            self._kind, rows = kind, self._rows
        rows.append(row)
        self.waiting += len(row[0]) + _ROW_BYTES

    def put(self, status: int, payload: Any) -> None:
        """Add one answer."""
        self._close_run()
        self._add(status, payload)

    def flush(self) -> None:
        """Send everything."""
        self._close_run()
        if self._frames:
            self._write(b"".join(self._frames))
            self._frames.clear()
        self.waiting = 0

    def _close_run(self) -> None:
        if self._rows:
            rows, self._rows = self._rows, []
            self._add_rows(rows)

    def _add_rows(self, rows: list[list[Any]]) -> None:
        if len(rows) == 1:
            self._add(wire.OK, rows[0])
            return
        try:
            frame = wire.encode_reply(wire.RUN, columns.encode(rows))
        except MemoryError:
            frame = b""
        if frame and len(frame) <= self._cap:
            self._frames.append(frame)
        else:  # nothing of more than one row may be larger than one alone
            half = len(rows) // 2
            self._add_rows(rows[:half])
            self._add_rows(rows[half:])

    def _add(self, status: int, payload: Any) -> None:
        try:
            frame = wire.encode_reply(status, payload)
        except MemoryError:
            frame = _OUT_OF_MEMORY
        self._frames.append(frame)
        self.waiting += len(frame)


_OUT_OF_MEMORY = wire.encode_reply(wire.RAISED, ["MemoryError", "out of memory", 0])
