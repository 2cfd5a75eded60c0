"""Compaction: smaller, and everything that counts stays."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from memory_programs import AUCTION, MAZE, PLAIN, played, renamed, variant

from spade_envs.memory import HashedTokenEmbedder, Memory, StoreError, UnknownRecord
from spade_envs.record import EnvironmentRecord, PlayStatistics


def _close(one: PlayStatistics, other: PlayStatistics) -> bool:
    return one == PlayStatistics(
        other.plain_plays,
        pytest.approx(other.plain_return),  # type: ignore[arg-type]
        other.plain_wins,
        other.hinted_plays,
        pytest.approx(other.hinted_return),  # type: ignore[arg-type]
        other.hinted_wins,
    )


def test_plays_become_sums_and_statistics_stay(memory: Memory) -> None:
    records = [
        EnvironmentRecord.create(MAZE, "MazeEnv", skill="s", statistics=played((1, 4), (2, 4))),
        EnvironmentRecord.create(AUCTION, "AuctionEnv", skill="s"),
        EnvironmentRecord.create(PLAIN, "ChainEnv", skill="s"),
    ]
    memory.commit_round("r", 0, records)
    rng = random.Random(0)
    for record in records[:2]:
        for hinted in (False, True):
            memory.record_plays(record.id, [rng.uniform(-1, 1) for _ in range(500)], hinted=hinted, run="r")
    position = memory.position()
    memory.record_plays(records[0].id, [1.0] * 300, hinted=False, run="r")
    before, exemplars = memory.records(), memory.exemplars("s", random.Random(3))

    first = memory.compact(before=position)
    assert (first.plays_folded, first.sources_dropped) == (2000, 0)
    assert first.bytes_after < first.bytes_before
    assert all(_close(one.statistics, two.statistics) for one, two in zip(memory.records(), before, strict=True))
    assert [one.id for one in memory.exemplars("s", random.Random(3))] == [one.id for one in exemplars]

    memory.rollback("r", position)  # what came later can still be undone
    assert memory.get(records[0].id).statistics.plain_plays == 504
    with pytest.raises(StoreError, match=r"cannot undo .*compaction.*later checkpoint"):
        memory.rollback("r", 0)
    assert len(memory) == 3
    memory.rollback("another run", 0)

    assert memory.compact().plays_folded == 0
    memory.record_plays(records[2].id, [1.0, 0.5], hinted=True)
    assert memory.compact().plays_folded == 2
    assert memory.get(records[2].id).statistics == PlayStatistics(0, 0.0, 0, 2, 1.5, 1)


def test_sources_of_archived_records_can_be_given_up(tmp_path: Path) -> None:
    padding = "\n".join(f"# {number} and some words" for number in range(300))
    with Memory.open(tmp_path, embedder=HashedTokenEmbedder()) as memory:
        maze = EnvironmentRecord.create(MAZE, "MazeEnv")
        memory.add(maze)
        memory.add_many(variant(number, f"{PLAIN}\n{padding}") for number in range(40))
        live = [one.id for one in memory.records(newest_first=True, limit=10)][::-1]
        memory.evict(10)
        assert memory.compact().sources_dropped == 0
        done = memory.compact(drop_archived=True)
        assert done.sources_dropped == 31
        assert done.bytes_after < done.bytes_before / 2
        assert [one.id for one in memory.records(archived=None)] == live
        assert [id for id, _ in Memory.ids(tmp_path)] == live
        assert {one.id for one, _ in memory.search("chain", k=50)} == set(live)
        assert maze.id in memory
        assert not memory.add(maze)  # known, and it stays given up
        with pytest.raises(UnknownRecord):
            memory.get(maze.id)
        twin = memory.duplicate_of(renamed(MAZE))
        assert twin is not None
        assert twin.id == maze.id
        assert memory.compact(drop_archived=True).sources_dropped == 0
        assert len(memory.records(archived=None)) == 10


def test_a_read_only_memory_is_not_compacted(tmp_path: Path) -> None:
    with Memory.open(tmp_path) as memory:
        memory.add(variant(1))
    with Memory.open(tmp_path, read_only=True) as memory, pytest.raises(StoreError, match="read-only"):
        memory.compact()


def test_add_many_stores_in_batches(memory: Memory) -> None:
    assert memory.add_many((variant(number % 7) for number in range(20)), run="r", batch=3) == 7
    assert [one.id for one in memory.records(run="r")] == [variant(number).id for number in range(7)]
    assert memory.add_many([]) == 0
    broken = EnvironmentRecord.create("x = 1", "AnyEnv", meta={"when": object()})
    with pytest.raises(ValueError, match="JSON-safe"):
        memory.add_many([variant(8), variant(9), broken], batch=2)
    assert len(memory) == 9  # whole batches
    with pytest.raises(ValueError, match="batch"):
        memory.add_many([variant(1)], batch=0)
