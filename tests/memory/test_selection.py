"""Exemplars, negatives and eviction against cases worked out by hand."""

from __future__ import annotations

import random

import pytest
from memory_programs import played

from spade_envs.memory import HashedTokenEmbedder, Memory
from spade_envs.memory.selection import Standing, choose_evicted, choose_exemplars, choose_negative
from spade_envs.record import EnvironmentRecord, PlayStatistics

UNPLAYED = PlayStatistics()


def standing(seq: int, statistics: PlayStatistics = UNPLAYED, *, proven: bool = False) -> Standing:
    return Standing(seq, f"id{seq}", proven, statistics)


def drawn(window: list[Standing], n: int = 2, draws: int = 300) -> set[str]:
    rng = random.Random(0)
    return {id for _ in range(draws) for id in choose_exemplars(window, rng, n)}


def test_the_band_of_win_rates_is_inclusive() -> None:
    window = [
        standing(1, played((3, 20))),  # .15
        standing(2, played((17, 20))),  # .85
        standing(3, played((14, 100))),
        standing(4, played((86, 100))),
        standing(5, played((0, 4))),
    ]
    assert drawn(window) == {"id1", "id2"}


def test_exemplars_come_from_the_ten_of_highest_regret() -> None:
    # Win rate .5, hinted win rate .50, .51, ... : regret grows with seq, 0.00 to 0.14.
    window = [standing(seq, played((50, 100), (50 + seq, 100))) for seq in range(15)]
    assert drawn(window, n=2) == {f"id{seq}" for seq in range(5, 15)}
    assert drawn(window, n=4) == {f"id{seq}" for seq in range(3, 15)}  # 3 n = 12
    assert len(choose_exemplars(window, random.Random(1), 2)) == 2


def test_without_hinted_plays_regret_counts_as_zero() -> None:
    worse = [standing(seq, played((50, 100), (20, 100))) for seq in range(10)]  # the hint hurts: regret -.3
    window = [*worse, standing(10, played((1, 2)))]
    assert "id10" in drawn(window)
    assert len(drawn(window)) == 10


def test_missing_exemplars_are_filled_with_unplayed_proven_ones() -> None:
    window = [
        standing(1, played((1, 2), (2, 2))),
        standing(2, proven=True),
        standing(3, proven=False),
        standing(4, played((2, 2)), proven=True),
    ]
    assert sorted(choose_exemplars(window, random.Random(0), 2)) == ["id1", "id2"]
    assert sorted(choose_exemplars(window, random.Random(0), 5)) == ["id1", "id2"]
    assert choose_exemplars(window, random.Random(0), 1) == ["id1"]
    assert choose_exemplars([], random.Random(0), 2) == []


def test_negatives_are_mastered_or_hopeless() -> None:
    window = [
        standing(1, played((91, 100))),
        standing(2, played((9, 100))),
        standing(3, played((90, 100))),
        standing(4, played((10, 100))),
        standing(5, played((50, 100))),
        standing(6),
    ]
    rng = random.Random(0)
    assert {choose_negative(window, rng) for _ in range(100)} == {"id1", "id2"}
    assert choose_negative(window[2:], rng) is None


def test_eviction_keeps_the_frontier_and_drops_the_oldest_settled_first() -> None:
    standings = [
        standing(1, played((5, 10))),  # frontier
        standing(2, played((10, 10))),  # mastered
        standing(3),  # unplayed
        standing(4, played((0, 10))),  # hopeless
        standing(5, played((88, 100))),  # in between
        standing(6, played((2, 10))),  # frontier
    ]
    order = ["id2", "id4", "id3", "id5", "id1", "id6"]
    for capacity in range(8):
        assert choose_evicted(standings, capacity) == order[: max(0, 6 - capacity)]
    with pytest.raises(ValueError, match="capacity"):
        choose_evicted(standings, -1)


def _record(number: int, skill: str, statistics: PlayStatistics = UNPLAYED) -> EnvironmentRecord:
    return EnvironmentRecord.create(f"n = {number}", "NumberEnv", skill=skill, statistics=statistics, proven=True)


def test_the_window_is_the_newest_live_records_of_all_skills(tmp_path: object) -> None:
    frontier = played((1, 2), (2, 2))
    with Memory.open(str(tmp_path), embedder=HashedTokenEmbedder(), capacity=3) as memory:
        for number, skill in enumerate(["a", "a", "b", "a", "b"]):
            memory.add(_record(number, skill, frontier))
        names = {one.source for _ in range(20) for one in memory.exemplars("a", random.Random(0), n=5)}
        assert names == {"n = 3\n"}  # of the newest three, one has skill a
        assert memory.exemplars("c", random.Random(0)) == []
        assert memory.negative("a", random.Random(0)) is None
        memory.record_plays(_record(3, "a").id, [1.0] * 38, hinted=False)  # 39 of 40
        assert memory.exemplars("a", random.Random(0)) == []
        found = memory.negative("a", random.Random(0))
        assert found is not None
        assert found.source == "n = 3\n"
        assert memory.evict() == [_record(3, "a").id, _record(0, "a").id]
        assert {one.source for one in memory.exemplars("a", random.Random(0))} == {"n = 1\n"}


def test_the_same_seed_draws_the_same(tmp_path: object) -> None:
    with Memory.open(str(tmp_path), embedder=HashedTokenEmbedder()) as memory:
        memory.commit_round("r", 0, [_record(number, "a", played((1, 2), (2, 2))) for number in range(30)])
        draws = [[one.id for one in memory.exemplars("a", random.Random(7))] for _ in range(2)]
        assert draws[0] == draws[1]
        assert draws[0] != [one.id for one in memory.exemplars("a", random.Random(8))]
