"""Making a memory smaller: plays folded into sums, sources of archived records given up, free pages returned."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from ..record import PlayStatistics
from . import rows
from .store import Store


@dataclass(frozen=True, slots=True)
class Compacted:
    """What a compaction did. Sizes are of the database file, in bytes."""

    bytes_before: int
    bytes_after: int
    plays_folded: int
    sources_dropped: int


def compact(store: Store, *, before: int | None, drop_archived: bool) -> Compacted:
    """See :meth:`Memory.compact`."""
    size = _size(store)
    with store.database.write() as (connection, tick):
        folded = _fold(connection, tick if before is None else before)
        dropped = _drop_archived(connection) if drop_archived else 0
    store.database.vacuum()
    return Compacted(size, _size(store), folded, dropped)


def _fold(connection: sqlite3.Connection, before: int) -> int:
    """Move the plays up to a tick into the base statistics of their records."""
    count = int(connection.execute("SELECT COUNT(*) FROM plays WHERE at <= ?", (before,)).fetchone()[0])
    if not count:
        return 0
    for run, at in connection.execute(
        "SELECT run, MAX(at) FROM plays WHERE at <= ? GROUP BY run", (before,)
    ).fetchall():
        connection.execute(
            "INSERT INTO folded (run, at) VALUES (?, ?) ON CONFLICT (run) DO UPDATE SET at = MAX(at, excluded.at)",
            (run, at),
        )
    played = connection.execute("SELECT DISTINCT record FROM plays WHERE at <= ?", (before,)).fetchall()
    for (seq,) in played:
        whole = rows.sums(connection, "?", [seq])[seq]
        connection.execute("DELETE FROM plays WHERE record = ? AND at <= ?", (seq, before))
        left = rows.sums(connection, "?", [seq]).get(seq, PlayStatistics())
        base = PlayStatistics(
            *connection.execute(f"SELECT {rows.SUM_COLUMNS} FROM records WHERE seq = ?", (seq,)).fetchone()
        )
        moved = (
            base.plain_plays + whole.plain_plays - left.plain_plays,
            base.plain_return + (whole.plain_return - left.plain_return),
            base.plain_wins + whole.plain_wins - left.plain_wins,
            base.hinted_plays + whole.hinted_plays - left.hinted_plays,
            base.hinted_return + (whole.hinted_return - left.hinted_return),
            base.hinted_wins + whole.hinted_wins - left.hinted_wins,
        )
        names = rows.SUM_COLUMNS.replace(",", " = ?,") + " = ?"
        connection.execute(f"UPDATE records SET {names} WHERE seq = ?", (*moved, seq))
        rows.update_standing(connection, seq)
    return count


def _drop_archived(connection: sqlite3.Connection) -> int:
    archived = "SELECT seq FROM records WHERE archived_at IS NOT NULL AND dropped = 0"
    count = int(connection.execute(f"SELECT COUNT(*) FROM ({archived})").fetchone()[0])
    connection.execute(f"DELETE FROM bodies WHERE seq IN ({archived})")
    connection.execute("UPDATE records SET dropped = 1 WHERE archived_at IS NOT NULL")
    return count


def _size(store: Store) -> int:
    with store.database.read() as connection:
        pages, page = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
        return int(pages * page)
