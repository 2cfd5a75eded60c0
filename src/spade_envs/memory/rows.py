"""Records as rows: what is written for one, how it is read back, and the sums of its plays."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..record import WIN_RETURN, EnvironmentRecord, PlayStatistics
from . import signature
from .database import UnknownRecord
from .selection import grade

SUM_COLUMNS = "plain_plays, plain_return, plain_wins, hinted_plays, hinted_return, hinted_wins"
INSERT_SIGNATURE = "INSERT INTO signatures (seq, plain, literal, words) VALUES (?, ?, ?, ?)"


@dataclass(frozen=True, slots=True)
class Signed:
    """The columns that are computed from a record's program."""

    fingerprint: str
    literal_fingerprint: str
    columns: tuple[bytes, bytes, str]  # of the table of signatures

    @classmethod
    def of(cls, record: EnvironmentRecord) -> Signed:
        """Compute them."""
        one = signature.sign(record.source)
        words = text(signature.text_of(record))
        sketches = [signature.to_bytes(signature.sketch(elements)) for elements in (one.plain, one.literal)]
        stored = (sketches[0], sketches[1], words)
        return cls(one.fingerprint, one.literal_fingerprint, stored)


@dataclass(frozen=True, slots=True)
class Row:
    """A record ready to be inserted; made outside the transaction, since it may fail or take long."""

    values: tuple[Any, ...]  # of _COLUMNS
    body: str
    signed: Signed


_COLUMNS = (
    f"id, name, kind, skill, generator, run, proven, {SUM_COLUMNS}, fingerprint, literal_fingerprint, grade, score"
)


def make_row(record: EnvironmentRecord, run: str) -> Row:
    """Prepare a record for :func:`insert`.

    Raises:
        ValueError: if a statistic is not finite, or report or meta are not JSON-safe.
    """
    values = record.to_dict()
    statistics = values.pop("statistics")
    if not all(map(math.isfinite, statistics.values())):
        raise ValueError(f"statistics of {record.env_id} must be finite numbers, got {record.statistics}")
    try:
        body = json.dumps(values)  # ASCII: lone surrogates and NULs in a source survive
    except (TypeError, ValueError) as error:
        raise ValueError(f"report and meta of {record.env_id} must be JSON-safe: {error}") from error
    texts = [text(one) for one in (record.id, record.name, record.kind, record.skill, record.generator, run)]
    signed = Signed.of(record)
    graded = grade(record.statistics, proven=record.proven)
    hashes = (signed.fingerprint, signed.literal_fingerprint)
    return Row((*texts, int(record.proven), *statistics.values(), *hashes, *graded), body, signed)


def insert(connection: sqlite3.Connection, records: Sequence[Row], tick: int) -> int:
    """Insert those whose id is new; return how many that were."""
    added = 0
    for row in records:
        cursor = connection.execute(
            f"INSERT INTO records ({_COLUMNS}, at) VALUES ({marks(row.values)}, ?) ON CONFLICT (id) DO NOTHING",
            [*row.values, tick],
        )
        if cursor.rowcount == 1:
            seq = cursor.lastrowid
            connection.execute("INSERT INTO bodies (seq, body) VALUES (?, ?)", (seq, row.body))
            connection.execute(INSERT_SIGNATURE, (seq, *row.signed.columns))
            added += 1
    return added


def insert_plays(
    connection: sqlite3.Connection, id: str, values: Sequence[float], hinted: bool, run: str, step: int, tick: int
) -> None:
    """Append one row for each return and bring the record's grade up to date."""
    found = connection.execute("SELECT seq FROM records WHERE id = ?", (id,)).fetchone()
    if found is None:
        raise UnknownRecord(f"no record {id!r} in this memory; add the record before its plays")
    connection.executemany(
        "INSERT INTO plays (record, hinted, value, run, step, at) VALUES (?, ?, ?, ?, ?, ?)",
        [(found[0], int(hinted), value, text(run), int(step), tick) for value in values],
    )
    update_standing(connection, found[0])


def update_standing(connection: sqlite3.Connection, seq: int) -> None:
    """Bring the stored grade and score of a record up to date with its plays."""
    proven, *base = connection.execute(f"SELECT proven, {SUM_COLUMNS} FROM records WHERE seq = ?", (seq,)).fetchone()
    statistics = total(PlayStatistics(*base), sums(connection, "?", [seq]).get(seq))
    graded = grade(statistics, proven=bool(proven))
    connection.execute("UPDATE records SET grade = ?, score = ? WHERE seq = ?", (*graded, seq))


def select(connection: sqlite3.Connection, clause: str, values: Sequence[Any]) -> list[EnvironmentRecord]:
    """Return the records that a WHERE clause names, with their statistics; without those whose source was dropped."""
    played = sums(connection, f"SELECT seq FROM records {clause}", values)
    found = connection.execute(f"SELECT seq, body, {SUM_COLUMNS} FROM records JOIN bodies USING (seq) {clause}", values)
    return [
        EnvironmentRecord.from_dict(json.loads(body)).with_statistics(total(PlayStatistics(*base), played.get(seq)))
        for seq, body, *base in found
    ]


def sums(connection: sqlite3.Connection, seqs: str, values: Sequence[Any]) -> dict[int, PlayStatistics]:
    """Sum the plays of the records that the subquery ``seqs`` names."""
    found: dict[int, PlayStatistics] = {}
    for seq, hinted, *three in connection.execute(
        "SELECT record, hinted, COUNT(*), SUM(value), SUM(value >= ?) FROM plays INDEXED BY plays_sums"
        f" WHERE record IN ({seqs}) GROUP BY record, hinted",
        [WIN_RETURN, *values],
    ):
        one = PlayStatistics(0, 0.0, 0, *three) if hinted else PlayStatistics(*three)
        found[seq] = total(found[seq], one) if seq in found else one
    return found


def total(base: PlayStatistics, more: PlayStatistics | None) -> PlayStatistics:
    """Add two sums."""
    if more is None:
        return base
    return PlayStatistics(
        base.plain_plays + more.plain_plays,
        base.plain_return + more.plain_return,
        base.plain_wins + more.plain_wins,
        base.hinted_plays + more.hinted_plays,
        base.hinted_return + more.hinted_return,
        base.hinted_wins + more.hinted_wins,
    )


def finite(returns: Sequence[float]) -> list[float]:
    """Return the values as floats, or raise ValueError for one that is not finite."""
    values = [float(value) for value in returns]
    if not all(map(math.isfinite, values)):
        raise ValueError(f"returns must be finite numbers, got {values}")
    return values


def chunks(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    """Cut ``ids`` into pieces: SQLite bounds the number of parameters."""
    return (ids[start : start + 500] for start in range(0, len(ids), 500))


def marks(values: Sequence[object]) -> str:
    """Return as many question marks as there are values."""
    return ", ".join("?" * len(values))


def text(value: str) -> str:
    """Make a column value that SQLite can store: lone surrogates are escaped (the body keeps the original)."""
    return value.encode("utf-8", "backslashreplace").decode()
