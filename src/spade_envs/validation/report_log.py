"""Finished reports of a run over a pool, one JSON line each, so that a killed run goes on where it was."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from spade_envs.record import source_id
from spade_envs.validation.config import ValidationConfig
from spade_envs.validation.finding import Report
from spade_envs.validation.scratch import number_of, scratch_tables

_TABLES = (
    "CREATE TABLE places (identity TEXT PRIMARY KEY, place INTEGER) WITHOUT ROWID",
    "CREATE TABLE lines (number INTEGER PRIMARY KEY)",
)


def configuration_key(config: ValidationConfig, allow: Sequence[str]) -> str:
    """Return a short word that changes with whatever a report depends on, apart from the source."""
    from spade_envs import __version__

    values = [dataclasses.asdict(config), sorted(allow), __version__]
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]


class ReportLog:
    """Appends reports to a file and finds again what stands there, by source and configuration.

    Reports stay in the file; where they are is looked up in a table that is on disk when it is large.
    """

    def __init__(self, path: str | Path, configuration: str, *, resume: bool = False) -> None:
        """Open the file; a torn last line is dropped.

        Args:
            path: the file, made with its folder if it is not there.
            configuration: :func:`configuration_key` of this run; lines of other configurations are left alone.
            resume: go on with a file that is there.

        Raises:
            FileExistsError: if it holds reports and ``resume`` is False.
            ValueError: if it holds something else.
        """
        self.path, self._configuration = Path(path), configuration
        self._tables = scratch_tables(*_TABLES)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if not resume and self.path.exists() and self.path.stat().st_size:
            raise FileExistsError(f"{path} is there already: go on with it by --resume, or name another file")
        self._file = self.path.open("a+b")
        try:
            self._read()
        except BaseException:
            self._file.close()
            raise

    def __len__(self) -> int:
        """How many different programs have a report of this configuration."""
        return int(self._tables.execute("SELECT count(*) FROM places").fetchone()[0])

    def find(self, source: str) -> Report | None:
        """Return the report on ``source``, None if there is none of this configuration."""
        row = self._tables.execute("SELECT place FROM places WHERE identity = ?", (source_id(source),)).fetchone()
        if row is None:
            return None
        self._file.seek(row[0])
        return Report.from_dict(json.loads(self._file.readline()))

    def write(self, label: str, source: str, report: Report, **more: Any) -> None:
        """Append a line and hand it to the operating system, unless this label has its line already."""
        identity = source_id(source)
        number = (number_of(f"{identity} {label}"),)
        if self._tables.execute("SELECT 1 FROM lines WHERE number = ?", number).fetchone():
            return
        line = {"label": label, "id": identity, "configuration": self._configuration, **more, **report.to_dict()}
        self._file.seek(0, 2)
        place = self._file.tell()
        self._file.write(json.dumps(line).encode() + b"\n")
        self._file.flush()
        self._note(label, identity, place)

    def _note(self, label: str, identity: str, place: int) -> None:
        self._tables.execute("INSERT OR IGNORE INTO places VALUES (?, ?)", (identity, place))
        self._tables.execute("INSERT OR IGNORE INTO lines VALUES (?)", (number_of(f"{identity} {label}"),))

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        self._tables.close()

    def __enter__(self) -> ReportLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read(self) -> None:
        self._file.seek(0)
        place = 0
        for number, line in enumerate(self._file, start=1):
            if not line.endswith(b"\n"):
                self._file.truncate(place)
                return
            try:
                values = json.loads(line)
                if values["configuration"] == self._configuration:
                    self._note(values["label"], values["id"], place)
            except (ValueError, KeyError, TypeError, sqlite3.Error) as error:
                raise ValueError(f"expected a report in line {number} of {self.path}; got {line[:60]!r}") from error
            place += len(line)
