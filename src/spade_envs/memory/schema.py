"""The tables of a memory, and the step from their first layout to the present one."""

from __future__ import annotations

import json
import logging
import sqlite3

from ..record import EnvironmentRecord
from . import rows
from .database import APPLICATION_ID, SCHEMA_VERSION

_LOG = logging.getLogger(__name__)

FIRST = (
    "CREATE TABLE clock (tick INTEGER NOT NULL)",
    "INSERT INTO clock VALUES (0)",
    # Small rows that lists, policies and registration scan; AUTOINCREMENT so that a seq never names two records.
    """CREATE TABLE records (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        name TEXT NOT NULL,
        kind TEXT NOT NULL,
        skill TEXT NOT NULL,
        generator TEXT NOT NULL,
        run TEXT NOT NULL,
        proven INTEGER NOT NULL,
        fingerprint TEXT NOT NULL,
        at INTEGER NOT NULL,
        archived_at INTEGER,
        archived_run TEXT,
        plain_plays INTEGER NOT NULL, plain_return REAL NOT NULL, plain_wins INTEGER NOT NULL,
        hinted_plays INTEGER NOT NULL, hinted_return REAL NOT NULL, hinted_wins INTEGER NOT NULL)""",
    "CREATE INDEX records_fingerprint ON records (fingerprint)",
    "CREATE TABLE bodies (seq INTEGER PRIMARY KEY REFERENCES records (seq) ON DELETE CASCADE, body TEXT NOT NULL)",
    """CREATE TABLE plays (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        record INTEGER NOT NULL REFERENCES records (seq) ON DELETE CASCADE,
        hinted INTEGER NOT NULL,
        value REAL NOT NULL,
        run TEXT NOT NULL,
        step INTEGER NOT NULL,
        at INTEGER NOT NULL)""",
    # Sums read this index alone and in its order, so they do not depend on the order of insertion.
    "CREATE INDEX plays_sums ON plays (record, hinted, value)",
    """CREATE TABLE runs (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        run TEXT NOT NULL,
        round INTEGER NOT NULL,
        state TEXT NOT NULL,
        at INTEGER NOT NULL)""",
    "CREATE INDEX runs_run ON runs (run, round)",
    f"PRAGMA application_id = {APPLICATION_ID}",
    "PRAGMA user_version = 1",
)
"""The first layout."""
_SECOND = (
    # How many writes removed records: while it stands still, vectors need only be added.
    "ALTER TABLE clock ADD COLUMN removals INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE records ADD COLUMN literal_fingerprint TEXT NOT NULL DEFAULT ''",
    # What selection.grade says of the statistics, kept up with every play so that no play is read to draw exemplars.
    "ALTER TABLE records ADD COLUMN grade INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE records ADD COLUMN score REAL NOT NULL DEFAULT 0",
    # The source was given up by a compaction; the signature stays, so that the program still counts as known.
    "ALTER TABLE records ADD COLUMN dropped INTEGER NOT NULL DEFAULT 0",
    "CREATE INDEX records_literal ON records (literal_fingerprint)",
    "CREATE INDEX records_live ON records (seq) WHERE archived_at IS NULL",
    "CREATE INDEX records_grade ON records (skill, grade, score, seq) WHERE archived_at IS NULL",
    """CREATE TABLE signatures (
        seq INTEGER PRIMARY KEY REFERENCES records (seq) ON DELETE CASCADE,
        plain BLOB NOT NULL,
        literal BLOB NOT NULL,
        words TEXT NOT NULL)""",
    # Up to which tick a run's plays became base statistics: its rollback cannot reach behind that.
    "CREATE TABLE folded (run TEXT PRIMARY KEY, at INTEGER NOT NULL)",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)


def create(connection: sqlite3.Connection) -> None:
    """Make the tables in an empty database, inside the caller's transaction."""
    for statement in (*FIRST, *_SECOND):
        connection.execute(statement)


def upgrade(connection: sqlite3.Connection, name: str) -> None:
    """Bring the first layout to the present one, inside the caller's transaction; a few milliseconds a record.

    A record whose body cannot be read stays as it is, without a signature: known by its id and fingerprint alone.
    """
    seqs = [row[0] for row in connection.execute("SELECT seq FROM records ORDER BY seq")]
    if len(seqs) > 1000:
        _LOG.warning("bringing %s to the present layout, once: signatures of %d records", name, len(seqs))
    for statement in _SECOND:
        connection.execute(statement)
    for seq in seqs:
        rows.update_standing(connection, seq)
        body = connection.execute("SELECT body FROM bodies WHERE seq = ?", (seq,)).fetchone()
        try:
            record = EnvironmentRecord.from_dict(json.loads(body[0]))
        except (TypeError, ValueError, KeyError):
            _LOG.warning("record %d of %s is not readable; it stays without a signature", seq, name)
            continue
        signed = rows.Signed.of(record)
        connection.execute(
            "UPDATE records SET fingerprint = ?, literal_fingerprint = ? WHERE seq = ?",
            (signed.fingerprint, signed.literal_fingerprint, seq),
        )
        connection.execute(rows.INSERT_SIGNATURE, (seq, *signed.columns))
