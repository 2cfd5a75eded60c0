"""Records, plays and progress of runs in SQLite: the truth of a memory. Knows no vectors and no policy."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..record import WIN_RETURN, EnvironmentRecord, PlayStatistics
from .database import Database, UnknownRecord
from .lexical import fingerprint
from .selection import Standing

Plays = tuple[str, Sequence[float], bool]
"""Returns of episodes of one record: (the record's id, the returns, whether the hint was given)."""

_LARGEST = 2**63 - 1  # that SQLite can count
_SUM_COLUMNS = "plain_plays, plain_return, plain_wins, hinted_plays, hinted_return, hinted_wins"


class Store:
    """Statements over one :class:`Database`; every public method is one transaction."""

    def __init__(self, file: Path, *, read_only: bool = False, immutable: bool = False) -> None:
        self.database = Database(file, read_only=read_only, immutable=immutable)

    def add(self, records: Sequence[EnvironmentRecord], run: str) -> int:
        """Insert those of ``records`` whose id is new; return how many that were."""
        rows = [_row(record, run) for record in records]  # before the lock: serialising may fail or take long
        with self.database.write() as (connection, tick):
            return _insert(connection, rows, tick)

    def commit_round(
        self,
        run: str,
        round_index: int,
        records: Sequence[EnvironmentRecord],
        state: Mapping[str, Any],
        plays: Sequence[Plays] = (),
    ) -> int:
        """Insert records, plays and the run's progress together; see :meth:`Memory.commit_round`."""
        rows = [_row(record, run) for record in records]
        played = [(id, _finite(returns), hinted) for id, returns, hinted in plays]
        text = json.dumps(dict(state))
        with self.database.write() as (connection, tick):
            following, _ = progress_of(connection, run)
            if round_index < following:
                raise ValueError(
                    f"round {round_index} of run {run!r} is committed already; the next one is {following}. "
                    f"Is another process working on the same run?"
                )
            connection.execute(
                "INSERT INTO runs (run, round, state, at) VALUES (?, ?, ?, ?)", (_text(run), round_index, text, tick)
            )
            new = _insert(connection, rows, tick)
            for id, values, hinted in played:
                _insert_plays(connection, id, values, hinted, run, round_index, tick)
            return new

    def progress(self, run: str) -> tuple[int, dict[str, Any]]:
        """Return (next round index, state of the last committed round)."""
        with self.database.read() as connection:
            return progress_of(connection, run)

    def record_plays(self, id: str, returns: Sequence[float], *, hinted: bool, run: str, step: int) -> None:
        """Append one row for each return."""
        values = _finite(returns)
        with self.database.write() as (connection, tick):
            _insert_plays(connection, id, values, hinted, run, step, tick)

    def played(self, run: str) -> set[str]:
        """Return the ids of the records that ``run`` has played."""
        with self.database.read() as connection:
            rows = connection.execute(
                "SELECT id FROM records WHERE seq IN (SELECT DISTINCT record FROM plays WHERE run = ?)", (_text(run),)
            )
            return {row[0] for row in rows}

    def archive(self, ids: Iterable[str], run: str) -> None:
        """Flag records as archived."""
        with self.database.write() as (connection, tick):
            connection.executemany(
                "UPDATE records SET archived_at = ?, archived_run = ? WHERE id = ? AND archived_at IS NULL",
                [(tick, _text(run), id) for id in ids],
            )

    def rollback(self, run: str, position: int) -> None:
        """Undo what ``run`` did after ``position``; see :meth:`Memory.rollback`."""
        with self.database.write() as (connection, _):
            after = (_text(run), position)
            connection.execute("DELETE FROM plays WHERE run = ? AND at > ?", after)
            connection.execute("DELETE FROM runs WHERE run = ? AND at > ?", after)
            connection.execute(
                "UPDATE records SET archived_at = NULL, archived_run = NULL WHERE archived_run = ? AND archived_at > ?",
                after,
            )
            connection.execute(
                "DELETE FROM records WHERE run = ? AND at > ?"
                " AND NOT EXISTS (SELECT 1 FROM plays WHERE plays.record = records.seq)",
                after,
            )

    def position(self) -> int:
        """Return the number of the last transaction."""
        with self.database.read() as connection:
            return int(connection.execute("SELECT tick FROM clock").fetchone()[0])

    def names(self) -> list[tuple[str, str]]:
        """Return (id, class name) of every record, oldest first."""
        with self.database.read() as connection:
            return connection.execute("SELECT id, name FROM records ORDER BY seq").fetchall()

    def ids_after(self, seq: int) -> list[tuple[int, str]]:
        """Return (seq, id) of records newer than ``seq``, oldest first."""
        with self.database.read() as connection:
            return connection.execute("SELECT seq, id FROM records WHERE seq > ? ORDER BY seq", (seq,)).fetchall()

    def live_among(self, ids: Sequence[str], skill: str | None) -> set[str]:
        """Return those of ``ids`` that are not archived and, if given, of this skill."""
        live: set[str] = set()
        condition, values = ("", []) if skill is None else (" AND skill = ?", [_text(skill)])
        with self.database.read() as connection:
            for chunk in _chunks(ids):
                rows = connection.execute(
                    f"SELECT id FROM records WHERE id IN ({_marks(chunk)}) AND archived_at IS NULL{condition}",
                    [*chunk, *values],
                )
                live.update(row[0] for row in rows)
        return live

    def count(self, *, live: bool) -> int:
        """Return the number of records, all or not archived."""
        where = " WHERE archived_at IS NULL" if live else ""
        with self.database.read() as connection:
            return int(connection.execute(f"SELECT COUNT(*) FROM records{where}").fetchone()[0])

    def ids_with_prefix(self, prefix: str) -> list[str]:
        """Return up to 10 ids that start with ``prefix`` (lower-case hexadecimal digits)."""
        with self.database.read() as connection:
            rows = connection.execute(
                "SELECT id FROM records WHERE id >= ? AND id < ? ORDER BY id LIMIT 10", (prefix, prefix + "g")
            )
            return [row[0] for row in rows]

    def ids_with_fingerprint(self, value: str) -> list[str]:
        """Return the ids of programs with this lexical fingerprint, oldest first."""
        with self.database.read() as connection:
            return [
                row[0]
                for row in connection.execute("SELECT id FROM records WHERE fingerprint = ? ORDER BY seq", (value,))
            ]

    def by_ids(self, ids: Sequence[str]) -> list[EnvironmentRecord]:
        """Return the records with these ids, in this order; unknown ones are left out."""
        found: dict[str, EnvironmentRecord] = {}
        with self.database.read() as connection:
            for chunk in _chunks(ids):
                found |= {one.id: one for one in _select(connection, f"WHERE id IN ({_marks(chunk)})", chunk)}
        return [found[id] for id in ids if id in found]

    def select(
        self,
        *,
        kind: str | None,
        skill: str | None,
        generator: str | None,
        run: str | None,
        limit: int | None,
        newest_first: bool,
        archived: bool | None,
    ) -> list[EnvironmentRecord]:
        """Return records that match every filter given."""
        wanted = {"kind": kind, "skill": skill, "generator": generator, "run": run}
        filters = {column: _text(value) for column, value in wanted.items() if value is not None}
        conditions = [f"{column} = ?" for column in filters]
        if archived is not None:
            conditions.append(f"archived_at IS {'NOT ' if archived else ''}NULL")
        clause = "WHERE " + " AND ".join(conditions) if conditions else ""
        clause += f" ORDER BY seq {'DESC' if newest_first else 'ASC'} LIMIT ?"
        with self.database.read() as connection:
            return _select(
                connection, clause, [*filters.values(), -1 if limit is None else min(max(0, limit), _LARGEST)]
            )

    def standings(self, *, newest: int | None = None, skill: str | None = None) -> list[Standing]:
        """Return the standing of live records, oldest first; ``skill`` filters after ``newest`` has cut."""
        within = "SELECT * FROM records WHERE archived_at IS NULL ORDER BY seq DESC LIMIT ?"
        clause = f"FROM ({within})"
        values: list[str | int] = [-1 if newest is None else newest]
        if skill is not None:
            clause += " WHERE skill = ?"
            values.append(_text(skill))
        with self.database.read() as connection:
            sums = _sums(connection, f"SELECT seq {clause}", values)
            rows = connection.execute(f"SELECT seq, id, proven, {_SUM_COLUMNS} {clause} ORDER BY seq", values)
            return [
                Standing(seq, id, bool(proven), _total(PlayStatistics(*base), sums.get(seq)))
                for seq, id, proven, *base in rows
            ]

    def close(self) -> None:
        """Close the database."""
        self.database.close()


def _insert(connection: sqlite3.Connection, rows: Sequence[tuple[list[Any], str]], tick: int) -> int:
    added = 0
    for values, body in rows:
        cursor = connection.execute(
            "INSERT INTO records (id, name, kind, skill, generator, run, proven, fingerprint,"
            f" {_SUM_COLUMNS}, at) VALUES ({', '.join('?' * 15)}) ON CONFLICT (id) DO NOTHING",
            [*values, tick],
        )
        if cursor.rowcount == 1:
            connection.execute("INSERT INTO bodies (seq, body) VALUES (?, ?)", (cursor.lastrowid, body))
            added += 1
    return added


def _insert_plays(
    connection: sqlite3.Connection, id: str, values: Sequence[float], hinted: bool, run: str, step: int, tick: int
) -> None:
    found = connection.execute("SELECT seq FROM records WHERE id = ?", (id,)).fetchone()
    if found is None:
        raise UnknownRecord(f"no record {id!r} in this memory; add the record before its plays")
    connection.executemany(
        "INSERT INTO plays (record, hinted, value, run, step, at) VALUES (?, ?, ?, ?, ?, ?)",
        [(found[0], int(hinted), value, _text(run), int(step), tick) for value in values],
    )


def _row(record: EnvironmentRecord, run: str) -> tuple[list[Any], str]:
    values = record.to_dict()
    statistics = values.pop("statistics")
    if not all(map(math.isfinite, statistics.values())):
        raise ValueError(f"statistics of {record.env_id} must be finite numbers, got {record.statistics}")
    try:
        body = json.dumps(values)  # ASCII: lone surrogates and NULs in a source survive
    except (TypeError, ValueError) as error:
        raise ValueError(f"report and meta of {record.env_id} must be JSON-safe: {error}") from error
    texts = [_text(text) for text in (record.id, record.name, record.kind, record.skill, record.generator, run)]
    return [*texts, int(record.proven), fingerprint(record.source), *statistics.values()], body


def _finite(returns: Sequence[float]) -> list[float]:
    values = [float(value) for value in returns]
    if not all(map(math.isfinite, values)):
        raise ValueError(f"returns must be finite numbers, got {values}")
    return values


def _select(connection: sqlite3.Connection, clause: str, values: Sequence[Any]) -> list[EnvironmentRecord]:
    sums = _sums(connection, f"SELECT seq FROM records {clause}", values)
    rows = connection.execute(f"SELECT seq, body, {_SUM_COLUMNS} FROM records JOIN bodies USING (seq) {clause}", values)
    return [
        EnvironmentRecord.from_dict(json.loads(body)).with_statistics(_total(PlayStatistics(*base), sums.get(seq)))
        for seq, body, *base in rows
    ]


def _sums(connection: sqlite3.Connection, seqs: str, values: Sequence[Any]) -> dict[int, PlayStatistics]:
    """Sum the plays of the records that the subquery ``seqs`` names."""
    rows = connection.execute(
        "SELECT record, hinted, COUNT(*), SUM(value), SUM(value >= ?) FROM plays INDEXED BY plays_sums"
        f" WHERE record IN ({seqs}) GROUP BY record, hinted",
        [WIN_RETURN, *values],
    )
    sums: dict[int, PlayStatistics] = {}
    for seq, hinted, *three in rows:
        one = PlayStatistics(0, 0.0, 0, *three) if hinted else PlayStatistics(*three)
        sums[seq] = _total(sums[seq], one) if seq in sums else one
    return sums


def _total(base: PlayStatistics, more: PlayStatistics | None) -> PlayStatistics:
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


def read_row(connection: sqlite3.Connection, seq: int) -> tuple[PlayStatistics, str]:
    """Return the statistics and the run of one record; LookupError if there is no such row."""
    row = connection.execute(f"SELECT run, {_SUM_COLUMNS} FROM records WHERE seq = ?", (seq,)).fetchone()
    if row is None:
        raise LookupError(seq)
    return _total(PlayStatistics(*row[1:]), _sums(connection, "?", [seq]).get(seq)), row[0]


def progress_of(connection: sqlite3.Connection, run: str) -> tuple[int, dict[str, Any]]:
    """Return (next round index, state of the last committed round) of a run."""
    row = connection.execute(
        "SELECT round, state FROM runs WHERE run = ? ORDER BY round DESC LIMIT 1", (_text(run),)
    ).fetchone()
    return (int(row[0]) + 1, json.loads(row[1])) if row else (0, {})


def _chunks(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    return (ids[start : start + 500] for start in range(0, len(ids), 500))  # SQLite bounds the number of parameters


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def _text(value: str) -> str:
    """Make a column value that SQLite can store: lone surrogates are escaped (the body keeps the original)."""
    return value.encode("utf-8", "backslashreplace").decode()
