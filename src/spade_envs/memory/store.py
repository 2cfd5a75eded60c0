"""Records, plays and progress of runs in SQLite: the truth of a memory. Knows no vectors and no policy."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..record import EnvironmentRecord, PlayStatistics
from . import rows, selection
from .database import Database, StoreError
from .rows import insert as _insert
from .rows import insert_plays as _insert_plays
from .rows import make_row as _row
from .rows import text as _text

Plays = tuple[str, Sequence[float], bool]
"""Returns of episodes of one record: (the record's id, the returns, whether the hint was given)."""

_LARGEST = 2**63 - 1  # that SQLite can count


class Store:
    """Statements over one :class:`Database`; every public method is one transaction."""

    def __init__(self, file: Path, *, read_only: bool = False, immutable: bool = False) -> None:
        self.database = Database(file, read_only=read_only, immutable=immutable)

    def add(self, records: Sequence[EnvironmentRecord], run: str) -> int:
        """Insert those of ``records`` whose id is new; return how many that were."""
        made = [_row(record, run) for record in records]  # before the lock: serialising may fail or take long
        with self.database.write() as (connection, tick):
            return _insert(connection, made, tick)

    def commit_round(
        self,
        run: str,
        round_index: int,
        records: Sequence[EnvironmentRecord],
        state: Mapping[str, Any],
        plays: Sequence[Plays] = (),
    ) -> int:
        """Insert records, plays and the run's progress together; see :meth:`Memory.commit_round`."""
        made = [_row(record, run) for record in records]
        played = [(id, rows.finite(returns), hinted) for id, returns, hinted in plays]
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
            new = _insert(connection, made, tick)
            for id, values, hinted in played:
                _insert_plays(connection, id, values, hinted, run, round_index, tick)
            return new

    def progress(self, run: str) -> tuple[int, dict[str, Any]]:
        """Return (next round index, state of the last committed round)."""
        with self.database.read() as connection:
            return progress_of(connection, run)

    def run_names(self) -> list[str]:
        """Return the names of the runs that stored progress, oldest first."""
        with self.database.read() as connection:
            found = connection.execute("SELECT run FROM runs GROUP BY run ORDER BY MIN(seq)")
            return [row[0] for row in found]

    def record_plays(self, id: str, returns: Sequence[float], *, hinted: bool, run: str, step: int) -> None:
        """Append one row for each return."""
        values = rows.finite(returns)
        with self.database.write() as (connection, tick):
            _insert_plays(connection, id, values, hinted, run, step, tick)

    def played(self, run: str) -> set[str]:
        """Return the ids of the records that ``run`` has played."""
        with self.database.read() as connection:
            found = connection.execute(
                "SELECT id FROM records WHERE seq IN (SELECT DISTINCT record FROM plays WHERE run = ?)", (_text(run),)
            )
            return {row[0] for row in found}

    def returns(self, id: str, *, hinted: bool) -> list[float]:
        """Return the returns of a record's plays, oldest first; not those that a compaction folded."""
        with self.database.read() as connection:
            found = connection.execute(
                "SELECT value FROM plays WHERE record = (SELECT seq FROM records WHERE id = ?) AND hinted = ?"
                " ORDER BY seq",
                (id, int(hinted)),
            )
            return [row[0] for row in found]

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
            folded = connection.execute("SELECT at FROM folded WHERE run = ? AND at > ?", after).fetchone()
            if folded is not None:
                raise StoreError(
                    f"cannot undo what run {run!r} did after position {position}: a compaction has folded its plays up "
                    f"to position {folded[0]} into sums. Restore a backup, or go on from a later checkpoint."
                )
            replayed = connection.execute(
                "SELECT DISTINCT record FROM plays WHERE run = ? AND at > ?", after
            ).fetchall()
            connection.execute("DELETE FROM plays WHERE run = ? AND at > ?", after)
            connection.execute("DELETE FROM runs WHERE run = ? AND at > ?", after)
            if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'retired'").fetchone():
                connection.execute("DELETE FROM retired WHERE run = ? AND at > ?", after)
            connection.execute(
                "UPDATE records SET archived_at = NULL, archived_run = NULL WHERE archived_run = ? AND archived_at > ?"
                " AND dropped = 0",
                after,
            )
            for (seq,) in replayed:
                rows.update_standing(connection, seq)
            removed = connection.execute(
                "DELETE FROM records WHERE run = ? AND at > ?"
                " AND NOT EXISTS (SELECT 1 FROM plays WHERE plays.record = records.seq)",
                after,
            )
            if removed.rowcount:
                connection.execute("UPDATE clock SET removals = removals + 1")

    def position(self) -> int:
        """Return the number of the last transaction."""
        with self.database.read() as connection:
            return int(connection.execute("SELECT tick FROM clock").fetchone()[0])

    def state(self) -> tuple[int, int]:
        """Return (number of the last transaction, how many of them removed records)."""
        with self.database.read() as connection:
            tick, removals = connection.execute("SELECT tick, removals FROM clock").fetchone()
            return int(tick), int(removals)

    def names(self) -> list[tuple[str, str]]:
        """Return (id, class name) of every record that has its source, oldest first; of older layouts too."""
        with self.database.read() as connection:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            where = " WHERE dropped = 0" if version > 1 else ""
            return connection.execute(f"SELECT id, name FROM records{where} ORDER BY seq").fetchall()

    def ids_after(self, seq: int) -> list[tuple[int, str]]:
        """Return (seq, id) of records newer than ``seq``, oldest first."""
        with self.database.read() as connection:
            return connection.execute("SELECT seq, id FROM records WHERE seq > ? ORDER BY seq", (seq,)).fetchall()

    def live_among(self, ids: Sequence[str], skill: str | None) -> set[str]:
        """Return those of ``ids`` that are not archived and, if given, of this skill."""
        live: set[str] = set()
        # The plus signs keep SQLite to the index of ids: those of skills and of live records lead to far more rows.
        condition, values = ("", []) if skill is None else (" AND +skill = ?", [_text(skill)])
        with self.database.read() as connection:
            for chunk in rows.chunks(ids):
                found = connection.execute(
                    f"SELECT id FROM records WHERE id IN ({rows.marks(chunk)}) AND +archived_at IS NULL{condition}",
                    [*chunk, *values],
                )
                live.update(row[0] for row in found)
        return live

    def count(self, *, live: bool) -> int:
        """Return the number of records, all or not archived."""
        where = " WHERE archived_at IS NULL" if live else ""
        with self.database.read() as connection:
            return int(connection.execute(f"SELECT COUNT(*) FROM records{where}").fetchone()[0])

    def ids_with_prefix(self, prefix: str) -> list[str]:
        """Return up to 10 ids that start with ``prefix`` (lower-case hexadecimal digits)."""
        with self.database.read() as connection:
            found = connection.execute(
                "SELECT id FROM records WHERE id >= ? AND id < ? ORDER BY id LIMIT 10", (prefix, prefix + "g")
            )
            return [row[0] for row in found]

    def by_ids(self, ids: Sequence[str]) -> list[EnvironmentRecord]:
        """Return the records with these ids, in this order; unknown ones are left out."""
        found: dict[str, EnvironmentRecord] = {}
        with self.database.read() as connection:
            for chunk in rows.chunks(ids):
                found |= {one.id: one for one in rows.select(connection, f"WHERE id IN ({rows.marks(chunk)})", chunk)}
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
            return rows.select(
                connection, clause, [*filters.values(), -1 if limit is None else min(max(0, limit), _LARGEST)]
            )

    def graded(self, skill: str, grade: int, *, newest: int, limit: int) -> list[int]:
        """Return the seqs of live records of a skill and grade, of highest score, then newest, first.

        Only the ``newest`` live records (of all skills) are looked at. Reads one index.
        """
        with self.database.read() as connection:
            floor = connection.execute(
                "SELECT seq FROM records INDEXED BY records_live WHERE archived_at IS NULL"
                " ORDER BY seq DESC LIMIT 1 OFFSET ?",
                (newest - 1,),
            ).fetchone()
            found = connection.execute(
                "SELECT seq FROM records INDEXED BY records_grade WHERE skill = ? AND grade = ? AND seq >= ?"
                " AND archived_at IS NULL ORDER BY score DESC, seq DESC LIMIT ?",
                (_text(skill), grade, floor[0] if floor else 0, limit),
            )
            return [row[0] for row in found]

    def evictable(self, capacity: int) -> list[str]:
        """Return the ids of live records beyond ``capacity``.

        Hopeless and mastered ones go first, the frontier last, in each group the oldest first.
        """
        with self.database.read() as connection:
            found = connection.execute(
                "SELECT id FROM records WHERE archived_at IS NULL"
                " ORDER BY CASE grade WHEN ? THEN 0 WHEN ? THEN 2 ELSE 1 END, seq"
                " LIMIT MAX(0, (SELECT COUNT(*) FROM records WHERE archived_at IS NULL) - ?)",
                (selection.HOPELESS_OR_MASTERED, selection.FRONTIER, capacity),
            )
            return [row[0] for row in found]

    def by_seqs(self, seqs: Sequence[int]) -> list[EnvironmentRecord]:
        """Return the records with these numbers, in this order; those without a source are left out."""
        with self.database.read() as connection:
            ids = dict(connection.execute(f"SELECT seq, id FROM records WHERE seq IN ({rows.marks(seqs)})", seqs))
        return self.by_ids([ids[seq] for seq in seqs if seq in ids])

    def signatures(self, seqs: Sequence[int]) -> dict[int, tuple[bytes, str]]:
        """Return {seq: (sketch, words)} of records, as far as they have a signature."""
        with self.database.read() as connection:
            found = connection.execute(
                f"SELECT seq, plain, words FROM signatures WHERE seq IN ({rows.marks(seqs)})", seqs
            )
            return {seq: (plain, words) for seq, plain, words in found}

    def words(self, after: int, limit: int) -> list[tuple[int, str, str]]:
        """Return up to ``limit`` (seq, id, words to embed) of records newer than ``after``, oldest first."""
        with self.database.read() as connection:
            return connection.execute(
                "SELECT seq, id, COALESCE(words, '') FROM records LEFT JOIN signatures USING (seq)"
                " WHERE seq > ? ORDER BY seq LIMIT ?",
                (after, limit),
            ).fetchall()

    def words_of(self, ids: Sequence[str]) -> dict[str, str]:
        """Return {id: words to embed}."""
        found: dict[str, str] = {}
        with self.database.read() as connection:
            for chunk in rows.chunks(ids):
                found |= dict(
                    connection.execute(
                        "SELECT id, COALESCE(words, '') FROM records LEFT JOIN signatures USING (seq)"
                        f" WHERE id IN ({rows.marks(chunk)})",
                        chunk,
                    )
                )
        return found

    def candidates(
        self, fingerprint: str, literal_fingerprint: str | None, ids: Sequence[str], twins: int
    ) -> list[tuple[str, bytes]]:
        """Return (id, sketch) of programs that another one may repeat.

        Those with the same literal fingerprint or else up to ``twins``, oldest first, with the same fingerprint, and
        those named by ``ids``. The sketch is the literal one if ``literal_fingerprint`` is given.
        """
        column = "plain" if literal_fingerprint is None else "literal"
        base = f"SELECT id, {column} FROM records JOIN signatures USING (seq) WHERE "
        with self.database.read() as connection:
            found: dict[str, bytes] = {}
            if literal_fingerprint is not None:
                found |= dict(
                    connection.execute(f"{base}literal_fingerprint = ? ORDER BY seq LIMIT 1", (literal_fingerprint,))
                )
            if not found:
                same = connection.execute(f"{base}fingerprint = ? ORDER BY seq LIMIT ?", (fingerprint, twins))
                found |= dict(same)
            for chunk in rows.chunks([id for id in ids if id not in found]):
                found |= dict(connection.execute(f"{base}id IN ({rows.marks(chunk)})", chunk))
            return list(found.items())

    def close(self) -> None:
        """Close the database."""
        self.database.close()


def read_row(connection: sqlite3.Connection, seq: int) -> tuple[PlayStatistics, str]:
    """Return the statistics and the run of one record; LookupError if there is no such row."""
    row = connection.execute(f"SELECT run, {rows.SUM_COLUMNS} FROM records WHERE seq = ?", (seq,)).fetchone()
    if row is None:
        raise LookupError(seq)
    return rows.total(PlayStatistics(*row[1:]), rows.sums(connection, "?", [seq]).get(seq)), row[0]


def progress_of(connection: sqlite3.Connection, run: str) -> tuple[int, dict[str, Any]]:
    """Return (next round index, state of the last committed round) of a run."""
    row = connection.execute(
        "SELECT round, state FROM runs WHERE run = ? ORDER BY round DESC LIMIT 1", (_text(run),)
    ).fetchone()
    return (int(row[0]) + 1, json.loads(row[1])) if row else (0, {})
