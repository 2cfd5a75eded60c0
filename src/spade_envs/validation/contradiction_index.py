"""Which programs of a pool may contradict each other, by the fingerprints (:mod:`.fingerprint`) of their reports."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from spade_envs.validation.scratch import number_of, scratch_tables

_MAX_ALIKE = 4  # answers, or texts, that are remembered for one statement, or one code
_MAX_CANDIDATES = 3  # for one program
_ROW = struct.Struct("<3q")  # seed, statement, answer
_TABLES = (
    "CREATE TABLE programs (id INTEGER PRIMARY KEY, name BLOB)",
    "CREATE TABLE answers (statement INTEGER, place INTEGER, answer INTEGER, seed INTEGER, program INTEGER, "
    "PRIMARY KEY (statement, place)) WITHOUT ROWID",
    "CREATE TABLE codes (code INTEGER, place INTEGER, program INTEGER, seeds BLOB, PRIMARY KEY (code, place)) "
    "WITHOUT ROWID",
)

_Seeds = dict[int, tuple[int, int]]
"""Seed -> numbers of statement and answer."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Two programs that may contradict each other, by fingerprint: another one's name and the seeds to look at."""

    kind: Literal["answers", "statements"]
    other: str
    seed: int
    other_seed: int


class ContradictionIndex:
    """Fingerprints of programs seen so far, on disk where they are many."""

    def __init__(self) -> None:
        self._tables = scratch_tables(*_TABLES)

    def add(self, name: str, measures: Mapping[str, Any]) -> None:
        """Remember a program by the measures of its report; nothing happens if they hold no fingerprints."""
        seeds, code = _read(measures)
        if not seeds:
            return
        program = self._tables.execute("INSERT INTO programs (name) VALUES (?)", (_stored(name),)).lastrowid
        for seed, (statement, answer) in _clear(seeds).items():
            known = self._tables.execute("SELECT answer FROM answers WHERE statement = ?", (statement,)).fetchall()
            if len(known) < _MAX_ALIKE and (answer,) not in known:
                row = (statement, len(known), answer, seed, program)
                self._tables.execute("INSERT INTO answers VALUES (?, ?, ?, ?, ?)", row)
        if code is not None:
            packed = b"".join(_ROW.pack(seed, *pair) for seed, pair in sorted(seeds.items()))
            alike = self._tables.execute("SELECT seeds FROM codes WHERE code = ?", (code,)).fetchall()
            if len(alike) < _MAX_ALIKE and (packed,) not in alike:
                self._tables.execute("INSERT INTO codes VALUES (?, ?, ?, ?)", (code, len(alike), program, packed))

    def candidates(self, name: str, measures: Mapping[str, Any]) -> list[Candidate]:
        """Return what may contradict a program, at most one candidate of a kind for each other program."""
        seeds, code = _read(measures)
        found: dict[tuple[str, str], Candidate] = {}
        for seed, (statement, answer) in _clear(seeds).items():
            rows = self._tables.execute(
                "SELECT name, seed FROM answers JOIN programs ON programs.id = program "
                "WHERE statement = ? AND answer != ? AND name != ? ORDER BY place",
                (statement, answer, _stored(name)),
            )
            for label, other_seed in rows:
                other = _read_name(label)
                found.setdefault(("answers", other), Candidate("answers", other, seed, other_seed))
        rows = self._tables.execute(
            "SELECT name, seeds FROM codes JOIN programs ON programs.id = program "
            "WHERE code = ? AND name != ? ORDER BY place",
            (code, _stored(name)),
        )
        for label, packed in rows:
            other = _read_name(label)
            texts = {seed: (statement, answer) for seed, statement, answer in _ROW.iter_unpack(packed)}
            for seed in sorted(seeds.keys() & texts.keys()):
                (statement, answer), (other_statement, other_answer) = seeds[seed], texts[seed]
                if answer == other_answer and statement != other_statement:
                    found.setdefault(("statements", other), Candidate("statements", other, seed, seed))
        return list(found.values())[:_MAX_CANDIDATES]


def _stored(name: str) -> bytes:
    """A name as bytes: that of a file need not be valid Unicode."""
    return name.encode("utf-8", "surrogatepass")


def _read_name(stored: bytes) -> str:
    return stored.decode("utf-8", "surrogatepass")


def _read(measures: Mapping[str, Any]) -> tuple[_Seeds, int | None]:
    """Fingerprints by seed, and that of the code. Records of other versions may have none."""
    rows, code = measures.get("fingerprints") or (), measures.get("code")
    seeds = {seed: (number_of(statement), number_of(answer)) for seed, statement, answer in rows}
    return seeds, number_of(code) if code else None


def _clear(seeds: _Seeds) -> _Seeds:
    """Seeds whose statement tells the whole puzzle: it is not that of every seed, and never has two answers."""
    answers: dict[int, set[int]] = {}
    for statement, answer in seeds.values():
        answers.setdefault(statement, set()).add(answer)
    if len(answers) < 2:
        return {}
    return {seed: pair for seed, pair in seeds.items() if len(answers[pair[0]]) == 1}
