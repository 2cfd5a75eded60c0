"""Memories of the first layout, made by its own SQL, open and are brought to the present one."""

from __future__ import annotations

import json
import logging
import random
import sqlite3
from pathlib import Path

import pytest
from memory_programs import AUCTION, MAZE, PLAIN, played, renamed

from spade_envs.memory import HashedTokenEmbedder, Memory
from spade_envs.memory.lexical import fingerprint
from spade_envs.record import EnvironmentRecord, PlayStatistics

# The statements of the release that wrote this layout, word for word in what they mean.
_FIRST_LAYOUT = """
CREATE TABLE clock (tick INTEGER NOT NULL);
INSERT INTO clock VALUES (5);
CREATE TABLE records (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, name TEXT NOT NULL, kind TEXT NOT NULL,
    skill TEXT NOT NULL, generator TEXT NOT NULL, run TEXT NOT NULL, proven INTEGER NOT NULL,
    fingerprint TEXT NOT NULL, at INTEGER NOT NULL, archived_at INTEGER, archived_run TEXT,
    plain_plays INTEGER NOT NULL, plain_return REAL NOT NULL, plain_wins INTEGER NOT NULL,
    hinted_plays INTEGER NOT NULL, hinted_return REAL NOT NULL, hinted_wins INTEGER NOT NULL);
CREATE INDEX records_fingerprint ON records (fingerprint);
CREATE TABLE bodies (seq INTEGER PRIMARY KEY REFERENCES records (seq) ON DELETE CASCADE, body TEXT NOT NULL);
CREATE TABLE plays (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, record INTEGER NOT NULL REFERENCES records (seq) ON DELETE CASCADE,
    hinted INTEGER NOT NULL, value REAL NOT NULL, run TEXT NOT NULL, step INTEGER NOT NULL, at INTEGER NOT NULL);
CREATE INDEX plays_sums ON plays (record, hinted, value);
CREATE TABLE runs (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, run TEXT NOT NULL, round INTEGER NOT NULL, state TEXT NOT NULL,
    at INTEGER NOT NULL);
CREATE INDEX runs_run ON runs (run, round);
INSERT INTO runs (run, round, state, at) VALUES ('old', 3, '{"loss": 1.5}', 4);
PRAGMA application_id = 1397768516;
PRAGMA user_version = 1;
"""
RECORDS = [
    EnvironmentRecord.create(MAZE, "MazeEnv", skill="Space", proven=True),
    EnvironmentRecord.create(AUCTION, "AuctionEnv", skill="Optimization", statistics=played((1, 4), (3, 4))),
    EnvironmentRecord.create(PLAIN, "ChainEnv", skill="Space", statistics=played((4, 4))),
]


@pytest.fixture
def old(tmp_path: Path) -> Path:
    folder = tmp_path / "old"
    folder.mkdir()
    connection = sqlite3.connect(folder / "memory.sqlite")
    connection.executescript("PRAGMA journal_mode = WAL;" + _FIRST_LAYOUT)
    for seq, record in enumerate(RECORDS, 1):
        values = record.to_dict()
        statistics = values.pop("statistics")
        connection.execute(
            f"INSERT INTO records VALUES (?, ?, ?, ?, ?, '', 'old', ?, ?, 1, ?, ?, {', '.join('?' * 6)})",
            [seq, record.id, record.name, record.kind, record.skill, int(record.proven), fingerprint(record.source),
             *((3, "old") if seq == 3 else (None, None)), *statistics.values()],
        )  # fmt: skip
        connection.execute("INSERT INTO bodies VALUES (?, ?)", (seq, json.dumps(values)))
    for value in (1.0, 0.0, 0.5):
        connection.execute(
            "INSERT INTO plays (record, hinted, value, run, step, at) VALUES (1, 0, ?, 'old', 1, 2)", (value,)
        )
    connection.commit()
    connection.close()
    return folder


def _check(memory: Memory) -> None:
    maze, auction = memory.records()
    assert maze == RECORDS[0].with_statistics(PlayStatistics(3, 1.5, 1))
    assert auction == RECORDS[1]
    assert memory.records(archived=True) == [RECORDS[2]]
    assert memory.progress("old") == (4, {"loss": 1.5})
    assert memory.exemplars("Space", random.Random(0)) == [maze]
    assert memory.exemplars("Optimization", random.Random(0)) == [auction]
    twin = memory.duplicate_of(renamed(MAZE))
    assert twin is not None
    assert twin.id == maze.id
    assert memory.duplicate_of(f"{PLAIN}# again", literals=True) is not None
    assert memory.search("bid for paintings", k=1)[0][0] == auction


def test_an_old_memory_is_upgraded_when_it_is_opened_for_writing(old: Path) -> None:
    for _ in range(2):
        with Memory.open(old, embedder=HashedTokenEmbedder()) as memory:
            _check(memory)
    with Memory.open(old, embedder=HashedTokenEmbedder()) as memory:
        memory.rollback("old", 1)
        assert memory.get(RECORDS[0].id).statistics == PlayStatistics()
        assert len(memory) == 3


def test_an_old_memory_can_be_read_without_touching_it(old: Path, caplog: pytest.LogCaptureFixture) -> None:
    before = (old / "memory.sqlite").read_bytes()
    assert Memory.ids(old) == [(record.id, record.name) for record in RECORDS]
    with (
        caplog.at_level(logging.WARNING),
        Memory.open(old, embedder=HashedTokenEmbedder(), read_only=True) as memory,
    ):
        _check(memory)
    assert "older layout" in caplog.text
    assert (old / "memory.sqlite").read_bytes() == before


def test_an_unreadable_body_does_not_stop_the_upgrade(old: Path, caplog: pytest.LogCaptureFixture) -> None:
    connection = sqlite3.connect(old / "memory.sqlite")
    connection.execute("UPDATE bodies SET body = 'broken' WHERE seq = 2")
    connection.commit()
    connection.close()
    with Memory.open(old, embedder=HashedTokenEmbedder()) as memory:
        assert RECORDS[1].id in memory
        assert memory.get(RECORDS[0].id).name == "MazeEnv"
        assert memory.duplicate_of(renamed(MAZE)) is not None
    assert "record 2" in caplog.text
