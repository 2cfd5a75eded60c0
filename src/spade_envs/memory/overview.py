"""What a list of a memory shows of its records, kept up to date with the database as others write to it.

Sources stay in the database: of a record's body only the date, the parents and the counts of findings are kept, about
half a kilobyte a record, so that sorting and filtering ten thousand takes milliseconds.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..record import EnvironmentRecord, PlayStatistics
from . import rows
from .memory import Memory
from .transfer import Play


class Findings(NamedTuple):
    """How many findings of each severity a record's report holds."""

    refuse: int = 0
    warn: int = 0
    info: int = 0


class _Facts(NamedTuple):
    created_at: float = 0.0
    findings: Findings = Findings()
    parents: tuple[str, ...] = ()


class Entry(NamedTuple):
    """One record without its source."""

    seq: int  # grows in the order of arrival
    id: str
    name: str
    kind: str
    skill: str
    generator: str
    run: str
    proven: bool
    archived: bool
    statistics: PlayStatistics
    created_at: float  # Unix seconds, 0 where it is not known
    findings: Findings
    parents: tuple[str, ...]

    @property
    def env_id(self) -> str:
        """The Gymnasium id."""
        return EnvironmentRecord(id=self.id, source="", name=self.name).env_id


class Overview:
    """All records of a memory that have their source, oldest first. Threads may share one."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._lock = threading.Lock()
        self._position = -1
        self._facts: dict[int, _Facts] = {}
        self._entries: tuple[Entry, ...] = ()
        self._children: dict[str, list[Entry]] | None = None

    def entries(self) -> tuple[Entry, ...]:
        """Return the entries as the database is now; the same object while nobody writes."""
        with self._lock:
            position = self._memory.position()
            if position != self._position:
                self._refresh()
                self._position, self._children = position, None
            return self._entries

    def children(self, id: str) -> list[Entry]:
        """Return the records in whose prompt the record ``id`` stood as an exemplar, oldest first."""
        entries = self.entries()
        with self._lock:
            if self._children is None:
                self._children = {}
                for entry in entries:
                    for parent in entry.parents:
                        self._children.setdefault(parent, []).append(entry)
            return list(self._children.get(id, ()))

    def _refresh(self) -> None:
        with self._memory._store.database.read() as connection:
            stored = connection.execute(
                "SELECT seq, id, name, kind, skill, generator, run, proven, archived_at IS NOT NULL,"
                f" {rows.SUM_COLUMNS} FROM records WHERE dropped = 0 ORDER BY seq"
            ).fetchall()
            played = rows.sums(connection, "SELECT seq FROM records", [])
            new = [row[0] for row in stored if row[0] not in self._facts]
            # Few new ones are looked up one by one; otherwise the table is read as it lies.
            if len(new) < len(stored) // 4:
                bodies = [
                    row
                    for start in range(0, len(new), 500)
                    for row in connection.execute(
                        f"SELECT seq, body FROM bodies WHERE seq IN ({rows.marks(new[start : start + 500])})",
                        new[start : start + 500],
                    )
                ]
                self._facts |= {seq: _facts(body) for seq, body in bodies}
            elif new:
                wanted = set(new)
                for seq, body in connection.execute("SELECT seq, body FROM bodies"):
                    if seq in wanted:
                        self._facts[seq] = _facts(body)
        nothing = _Facts()
        self._facts = {row[0]: self._facts.get(row[0], nothing) for row in stored}  # of removed ones nothing is kept
        self._entries = tuple(_entry(row, played.get(row[0]), self._facts[row[0]]) for row in stored)


def _entry(row: Sequence[Any], played: PlayStatistics | None, facts: _Facts) -> Entry:
    seq, id, name, kind, skill, generator, run, proven, archived, *base = row
    statistics = rows.total(PlayStatistics(*base), played)
    named = (seq, id, name, kind, skill, generator, run, bool(proven), bool(archived))
    return Entry(*named, statistics, facts.created_at, facts.findings, facts.parents)


def plays_of(memory: Memory, id: str) -> list[Play]:
    """Return the plays of a record one by one, oldest first, as far as no compaction has folded them into sums."""
    with memory._store.database.read() as connection:
        found = connection.execute(
            "SELECT hinted, value, run, step FROM plays WHERE record = (SELECT seq FROM records WHERE id = ?)"
            " ORDER BY seq",
            (id,),
        )
        return [Play(bool(hinted), value, run, step) for hinted, value, run, step in found]


def seqs_with_word(memory: Memory, word: str) -> set[int]:
    """Return the numbers of the records in whose words (of skill, name and source, lower case) ``word`` occurs."""
    with memory._store.database.read() as connection:
        found = connection.execute("SELECT seq FROM signatures WHERE instr(words, ?)", (rows.text(word.lower()),))
        return {row[0] for row in found}


def _facts(body: str) -> _Facts:
    """What is kept of a body; of one that another program wrote, as far as it can be read."""
    try:
        values = json.loads(body)
        counts = dict.fromkeys(Findings._fields, 0)
        for finding in values["report"].get("findings", ()):
            if finding.get("severity") in counts:
                counts[finding["severity"]] += 1
        parents = tuple(str(parent) for parent in values.get("parents", ()))
        return _Facts(_number(values.get("created_at")), Findings(**counts), parents)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return _Facts()


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
