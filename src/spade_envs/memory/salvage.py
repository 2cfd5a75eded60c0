"""Save what is readable of a damaged memory into a new one."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from ..record import EnvironmentRecord
from .database import StoreError
from .memory import DATABASE_NAME, Memory
from .store import Store, progress_of, read_row


@dataclass(frozen=True, slots=True)
class Salvaged:
    """What :func:`salvage` saved and missed."""

    records: int
    without_statistics: int  # of those, how many lost their plays
    lost: int  # records known to have existed whose source is unreadable


def salvage(damaged: str | Path, target: str | Path) -> Salvaged:
    """Copy every readable record of the memory in ``damaged`` to a new memory in ``target``.

    Row by row, so one bad page costs only what lies on it. A source whose SHA-256 is not its id counts as lost. Plays
    become base statistics; the progress of runs is kept; which records were archived is not. ``damaged`` is only read.

    Raises:
        StoreError: if ``target`` holds records already, or not even the header of ``damaged`` can be read.
    """
    found: list[tuple[EnvironmentRecord, str]] = []
    without = lost = 0
    with closing(Store(Path(damaged).expanduser() / DATABASE_NAME, read_only=True)) as store:
        connection = store.database.raw()
        for seq in range(1, _last(connection) + 1):
            try:
                row = connection.execute("SELECT body FROM bodies WHERE seq = ?", (seq,)).fetchone()
                if row is None:  # rolled back, or on a damaged page
                    continue
                values = json.loads(row[0])
                record = EnvironmentRecord.from_dict(values)
                if record.id != values["id"]:
                    raise ValueError("the source is not what was stored")
            except (sqlite3.DatabaseError, ValueError, KeyError, TypeError):
                lost += 1
                continue
            run = ""
            try:
                statistics, run = read_row(connection, seq)
                record = record.with_statistics(statistics)
            except (sqlite3.DatabaseError, LookupError):
                without += 1
            found.append((record, run))
        progress = {}
        with suppress(sqlite3.DatabaseError):
            for (run,) in connection.execute("SELECT DISTINCT run FROM runs").fetchall():
                progress[run] = progress_of(connection, run)
    with Memory.open(target) as memory:
        if len(memory.records(limit=1, archived=None)):
            raise StoreError(f"{target} holds records already; name a new folder to salvage into.")
        saved = sum(memory.add(record, run=run) for record, run in found)
        for run, (following, state) in progress.items():
            memory.commit_round(run, following - 1, [], state)
    return Salvaged(records=saved, without_statistics=without, lost=lost)


def _last(connection: sqlite3.Connection) -> int:
    """The greatest seq that was ever given, as far as that can be read."""
    last = 0
    for statement in (
        "SELECT seq FROM sqlite_sequence WHERE name = 'records'",
        "SELECT MAX(seq) FROM records",
        "SELECT MAX(seq) FROM bodies",
    ):
        with suppress(sqlite3.DatabaseError):
            row = connection.execute(statement).fetchone()
            last = max(last, (row and row[0]) or 0)
    return last
