"""One SQLite file: opening, schema version, locking, transactions, and errors that say what to do.

Not covered: statements about records and plays (``store.py``). WAL needs a local file system; on a network
share SQLite may refuse it, and then falls back to its rollback journal, which is slower but as safe.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_LOG = logging.getLogger(__name__)

SCHEMA_VERSION = 2
APPLICATION_ID = 0x53504144  # "SPAD": tells our files from other programs' databases
BUSY_SECONDS = 30.0


class StoreError(RuntimeError):
    """The memory's database cannot be used; the message says why and what to do. Nothing half-written is left."""


class UnknownRecord(KeyError):
    """No record, or more than one, answers to a key; the message names near ones."""

    def __str__(self) -> str:
        return str(self.args[0])


class Database:
    """A connection that threads share and that survives a fork (the child opens its own)."""

    def __init__(self, file: Path, *, read_only: bool = False, immutable: bool = False) -> None:
        """Open ``file``. ``immutable`` reads it without a trace beside it; only valid while nobody writes."""
        self.file = file
        self.read_only = read_only or immutable
        self._immutable = immutable
        self._closed = False
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._upgraded = False
        self._connection = self._open()

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """One consistent snapshot for the statements of the block."""
        with self._use() as connection:
            if connection.in_transaction:  # inside write() of the same thread
                yield connection
                return
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.rollback()

    @contextmanager
    def write(self) -> Iterator[tuple[sqlite3.Connection, int]]:
        """All or nothing. Yields the connection and the number of this transaction (grows by one each time)."""
        with self._use() as connection:
            self.require_writable()
            connection.execute("BEGIN IMMEDIATE")
            try:
                (tick,) = connection.execute("UPDATE clock SET tick = tick + 1 RETURNING tick").fetchone()
                yield connection, int(tick)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:  # a full disk may have rolled it back already
                    connection.execute("ROLLBACK")
                raise

    def require_writable(self) -> None:
        """Raise StoreError if the database was opened read-only."""
        if self.read_only:
            raise StoreError(f"the memory {self.file} was opened read-only; open it without read_only=True to write.")

    def vacuum(self) -> None:
        """Give free pages back to the file system; needs as much free space as the file is large."""
        with self._use() as connection:
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def upgrade_copy(self) -> None:
        """Where a read-only file is of an older layout, read from an upgraded copy of it, held in memory, from now on.

        What others write to the file later is not seen.
        """
        from . import schema

        self._upgraded = True
        with self._use() as connection:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version == SCHEMA_VERSION:
                return
            _LOG.warning(
                "%s is of an older layout; a copy is upgraded in memory. Open it once for writing to upgrade the file.",
                self.file,
            )
            copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            connection.backup(copy)
            copy.execute("BEGIN")
            schema.upgrade(copy, str(self.file))
            copy.execute("COMMIT")
            copy.execute("PRAGMA query_only = 1")
            connection.close()
            self._connection = copy

    def raw(self) -> sqlite3.Connection:
        """The connection itself, whose errors are SQLite's own; for reading a damaged file row by row."""
        return self._connection

    @property
    def lock(self) -> threading.RLock:
        """The lock of this process's threads, for state that must agree with the database."""
        self._after_fork()
        return self._lock

    def close(self) -> None:
        """Close the connection; SQLite folds the write-ahead log into the file when it was the last one."""
        with self.lock:
            if not self._closed:
                self._closed = True
                self._connection.close()

    @contextmanager
    def _use(self) -> Iterator[sqlite3.Connection]:
        with self.lock, translated_errors(self.file):
            if self._closed:
                raise StoreError(f"the memory {self.file} is closed; open it again with Memory.open.")
            yield self._connection

    def _after_fork(self) -> None:
        if self._pid == os.getpid():
            return
        # Closing a connection that was inherited through fork would break the parent's locks: keep it, unused.
        _INHERITED.append(self._connection)
        self._lock = threading.RLock()
        self._pid = os.getpid()
        if not self._closed:
            self._connection = self._open()
            if self._upgraded:
                self.upgrade_copy()

    def _open(self) -> sqlite3.Connection:
        with translated_errors(self.file):
            if self.read_only:
                return _open_read_only(self.file, immutable=self._immutable)
            return _open_read_write(self.file)


_INHERITED: list[sqlite3.Connection] = []


def _open_read_write(file: Path) -> sqlite3.Connection:
    from . import schema  # that stands on this module

    if file.parent.exists() and not file.parent.is_dir():
        raise StoreError(f"a memory is a folder, but {file.parent} is a file; name a folder.")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"cannot create the memory folder {file.parent}: {error.strerror}. Name another one."
        ) from error
    if not os.access(file.parent, os.W_OK) or (file.exists() and not os.access(file, os.W_OK)):
        raise StoreError(
            f"the memory {file} is not writable for this user; open it with read_only=True, or change its permissions."
        )
    connection = _connect(f"{file.absolute().as_uri()}?mode=rwc")
    try:
        _check_header(connection, file)
        _patiently(lambda: connection.execute("PRAGMA journal_mode = WAL").fetchone())
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("BEGIN IMMEDIATE")
        try:
            version = _check_header(connection, file)  # under the lock: nobody else makes or upgrades it meanwhile
            if version == 0:
                schema.create(connection)
            elif version < SCHEMA_VERSION:
                schema.upgrade(connection, str(file))
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    except BaseException:
        connection.close()
        raise
    return connection


def _open_read_only(file: Path, *, immutable: bool) -> sqlite3.Connection:
    if not file.is_file():
        raise StoreError(
            f"no memory at {file.parent} (expected the file {file.name} in it); "
            "name the folder of one (--memory, or SPADE_HOME), or make one (spade generate)."
        )
    uri = f"{file.absolute().as_uri()}?mode=ro"
    connection = _connect(f"{uri}&immutable=1" if immutable else uri)
    try:
        version = _check_header(connection, file)
        if version == 0:
            raise StoreError(f"{file} holds no memory yet; open it once without read_only=True.")
    except sqlite3.OperationalError as error:
        connection.close()
        forbidden = "unable to open" in str(error) or "readonly" in str(error)
        if immutable or not forbidden or has_log(file):
            raise
        # WAL needs a file beside the database, which a read-only folder forbids; without a log nothing is missed.
        return _open_read_only(file, immutable=True)
    except BaseException:
        connection.close()
        raise
    return connection


def has_log(file: Path) -> bool:
    """Whether a write-ahead log with contents lies beside the database."""
    log = file.with_name(file.name + "-wal")
    return log.exists() and log.stat().st_size > 0


def _connect(uri: str) -> sqlite3.Connection:
    return sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)


def _check_header(connection: sqlite3.Connection, file: Path) -> int:
    """Return the schema version (0: an empty file), or raise for a file that is not ours or too new."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
    if application != APPLICATION_ID and (application or version or tables):
        raise StoreError(f"{file} is another program's SQLite database, not a memory; name another folder.")
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"{file} was written by a newer version of spade-envs (schema {version}; this one reads up to "
            f"{SCHEMA_VERSION}). Upgrade spade-envs; the file was not touched."
        )
    return int(version)


def _patiently(action: Callable[[], object]) -> None:
    """Repeat ``action`` while the database is locked: a change of journal mode ignores SQLite's busy timeout."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            action()
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


@contextmanager
def translated_errors(file: Path) -> Iterator[None]:
    """Turn SQLite's errors into :class:`StoreError` with the file and the remedy."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise StoreError(_explain(file, error)) from error


def _explain(file: Path, error: sqlite3.DatabaseError) -> str:
    text = str(error)
    if "not a database" in text:
        return f"{file} is not a memory (not an SQLite file); it was not touched. Move it away, or restore a backup."
    if "malformed" in text or "corrupt" in text:
        return (
            f"{file} is damaged ({text}). Restore a backup, or save what is readable into a new folder with "
            f"spade_envs.memory.salvage({str(file.parent)!r}, ...)."
        )
    if "full" in text:
        return f"no space left for {file} ({text}). Nothing of this write was stored; free space and repeat it."
    if "locked" in text or "busy" in text:
        return f"another process has been writing to {file} for over {BUSY_SECONDS:.0f} s; stop it or try again."
    if "readonly" in text or "unable to open" in text:
        return f"cannot open or write {file} ({text}). Check the permissions, or open the memory with read_only=True."
    return f"{file}: SQLite says {text!r}. Nothing of this write was stored; check the disk and try again."
