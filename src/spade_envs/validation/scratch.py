"""Look-up tables that a run needs and nobody keeps: they lie on disk once they are large, so memory does not grow."""

from __future__ import annotations

import hashlib
import sqlite3


def scratch_tables(*statements: str) -> sqlite3.Connection:
    """Return an SQLite database of its own, made by ``statements``; it goes with the connection.

    It is held in memory up to SQLite's page cache (2 MB), beyond that in a file without a name.
    """
    tables = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    # Nothing of it is to survive a crash.
    for statement in ("PRAGMA journal_mode=OFF", "PRAGMA synchronous=OFF", *statements):
        tables.execute(statement)
    return tables


def number_of(text: str) -> int:
    """Return a number of 64 bits for a text, as SQLite's integers are."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
