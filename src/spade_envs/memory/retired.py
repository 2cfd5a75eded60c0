"""Which records are retired from replay in training, and why. The table is made when the first one is.

:meth:`Store.rollback` takes a run's retirements back. A retired record stays what it was for everybody else: it is
listed, searched, shown to the designer and made.
"""

from __future__ import annotations

import sqlite3

from .database import UnknownRecord
from .rows import text
from .store import Store

_TABLE = """CREATE TABLE IF NOT EXISTS retired (
    record INTEGER PRIMARY KEY REFERENCES records (seq) ON DELETE CASCADE,
    reason TEXT NOT NULL,
    run TEXT NOT NULL,
    at INTEGER NOT NULL)"""


def retire(store: Store, id: str, reason: str, run: str) -> None:
    """Note why a record is not replayed any more; the first reason stays."""
    with store.database.write() as (connection, tick):
        connection.execute(_TABLE)
        added = connection.execute(
            "INSERT INTO retired (record, reason, run, at) SELECT seq, ?, ?, ? FROM records WHERE id = ?"
            " ON CONFLICT (record) DO NOTHING RETURNING record",
            (text(reason), text(run), tick, id),
        ).fetchone()
        if added is None and not connection.execute("SELECT 1 FROM records WHERE id = ?", (id,)).fetchone():
            raise UnknownRecord(f"no record {id!r} in this memory; add the record before it is retired")


def reasons(store: Store) -> dict[str, str]:
    """Return {id: reason} of all retired records."""
    with store.database.read() as connection:
        if not _exists(connection):
            return {}
        return dict(connection.execute("SELECT id, reason FROM retired JOIN records ON seq = record ORDER BY record"))


def _exists(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'retired'").fetchone() is not None
