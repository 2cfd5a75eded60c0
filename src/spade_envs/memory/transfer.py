"""Carrying records from one memory to another: everything that is stored of them, not only their sums."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..record import WIN_RETURN, EnvironmentRecord, PlayStatistics
from .memory import Memory
from .rows import insert, make_row, text, update_standing

_BATCH = 200  # records read at once


class Play(NamedTuple):
    """One episode."""

    hinted: bool
    value: float  # its return
    run: str
    step: int


@dataclass(frozen=True, slots=True)
class Stored:
    """A record with all that a memory holds of it. Its statistics are the sums, ``plays`` among them."""

    record: EnvironmentRecord
    run: str = ""  # that added it
    archived: bool = False
    plays: tuple[Play, ...] = ()  # one by one, as far as they are known


def read_stored(
    memory: Memory,
    *,
    kind: str | None = None,
    skill: str | None = None,
    generator: str | None = None,
    run: str | None = None,
    archived: bool | None = False,
) -> Iterator[Stored]:
    """Yield what matches in the order of ids, a few at a time. ``archived``: False live, True archived, None both.

    Which records come is settled at the start; plays that are added meanwhile may be among theirs.
    """
    wanted = {"kind": kind, "skill": skill, "generator": generator, "run": run}
    filters = {column: text(value) for column, value in wanted.items() if value is not None}
    conditions = [f"{column} = ?" for column in filters]
    if archived is not None:
        conditions.append(f"archived_at IS {'NOT ' if archived else ''}NULL")
    where = " WHERE " + " AND ".join(conditions) if conditions else ""
    with memory._store.database.read() as connection:
        rows = connection.execute(
            f"SELECT seq, id, run, archived_at IS NOT NULL FROM records{where} ORDER BY id", [*filters.values()]
        ).fetchall()
    for start in range(0, len(rows), _BATCH):
        batch = rows[start : start + _BATCH]
        records = {record.id: record for record in memory._store.by_ids([row[1] for row in batch])}
        plays = _plays(memory, [row[0] for row in batch])
        for seq, identity, added_by, gone in batch:
            if identity in records:  # not rolled back meanwhile
                yield Stored(records[identity], added_by, bool(gone), tuple(plays.get(seq, ())))


def restore(memory: Memory, entries: Sequence[Stored]) -> int:
    """Store records with their plays and flags in one transaction; return how many were new.

    Records that are there already stay as they are. Plays that do not fit the sums (more of them than were counted)
    are left out; the sums are what counts.

    Raises:
        ValueError: if a number is not finite, or report or meta are not JSON-safe; nothing is stored then.
    """
    prepared = []
    for entry in entries:
        base = _without(entry.record.statistics, entry.plays)
        record = entry.record.with_statistics(base or entry.record.statistics)
        prepared.append((make_row(record, entry.run), entry, entry.plays if base else ()))
    added = 0
    with memory._store.database.write() as (connection, tick):
        for row, entry, plays in prepared:
            if not insert(connection, [row], tick):
                continue
            added += 1
            (seq,) = connection.execute("SELECT seq FROM records WHERE id = ?", (entry.record.id,)).fetchone()
            connection.executemany(
                "INSERT INTO plays (record, hinted, value, run, step, at) VALUES (?, ?, ?, ?, ?, ?)",
                [(seq, int(play.hinted), play.value, text(play.run), play.step, tick) for play in plays],
            )
            update_standing(connection, seq)
            if entry.archived:
                connection.execute(
                    "UPDATE records SET archived_at = ?, archived_run = ? WHERE seq = ?", (tick, text(entry.run), seq)
                )
    return added


def _plays(memory: Memory, seqs: Sequence[int]) -> dict[int, list[Play]]:
    marks = ", ".join("?" * len(seqs))
    found: dict[int, list[Play]] = {}
    with memory._store.database.read() as connection:
        for seq, hinted, value, run, step in connection.execute(
            f"SELECT record, hinted, value, run, step FROM plays WHERE record IN ({marks}) ORDER BY record, seq", seqs
        ):
            found.setdefault(seq, []).append(Play(bool(hinted), value, run, step))
    return found


def _without(total: PlayStatistics, plays: Sequence[Play]) -> PlayStatistics | None:
    """The sums without ``plays``; None if they are not part of them."""
    left = []
    for hinted, count, returns, wins in (
        (False, total.plain_plays, total.plain_return, total.plain_wins),
        (True, total.hinted_plays, total.hinted_return, total.hinted_wins),
    ):
        values = [play.value for play in plays if play.hinted is hinted]
        count -= len(values)
        wins -= sum(value >= WIN_RETURN for value in values)
        if not 0 <= wins <= count or not all(map(math.isfinite, values)):
            return None
        left.append((count, returns - math.fsum(values) if count else 0.0, wins))
    return PlayStatistics(*left[0], *left[1])
