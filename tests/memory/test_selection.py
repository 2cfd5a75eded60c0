"""Exemplars, negatives and eviction against cases worked out by hand."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from memory_programs import played

from spade_envs.memory import HashedTokenEmbedder, Memory
from spade_envs.memory.selection import BETWEEN, FRONTIER, HOPELESS_OR_MASTERED, PROVEN, UNPLAYED, grade
from spade_envs.record import EnvironmentRecord, PlayStatistics

NOT_PLAYED = PlayStatistics()


@pytest.mark.parametrize(
    ("statistics", "expected"),
    [
        (played((3, 20)), (FRONTIER, 0.0)),  # .15: the band is inclusive
        (played((17, 20)), (FRONTIER, 0.0)),  # .85
        (played((14, 100)), (BETWEEN, 0.0)),
        (played((86, 100)), (BETWEEN, 0.0)),
        (played((10, 100)), (BETWEEN, 0.0)),
        (played((90, 100)), (BETWEEN, 0.0)),
        (played((9, 100)), (HOPELESS_OR_MASTERED, 0.0)),
        (played((91, 100)), (HOPELESS_OR_MASTERED, 0.0)),
        (played((0, 4), (4, 4)), (HOPELESS_OR_MASTERED, 0.0)),
        (played((1, 4), (3, 4)), (FRONTIER, 0.5)),
        (played((2, 4), (1, 4)), (FRONTIER, -0.25)),
        (NOT_PLAYED, (UNPLAYED, 0.0)),
        (played((0, 0), (3, 4)), (UNPLAYED, 0.0)),
    ],
)
def test_grades(statistics: PlayStatistics, expected: tuple[int, float]) -> None:
    assert grade(statistics, proven=False) == expected
    assert grade(statistics, proven=True) == ((PROVEN, 0.0) if expected[0] == UNPLAYED else expected)


_TOKEN_TEXT = "if while for pass del + - * / < > [ ] ( ) { } : ;"
_TOKENS = _TOKEN_TEXT.split()
_WORDS = [f"{first}{second}" for first in ("ka", "mo", "ti", "lu", "re") for second in ("bra", "den", "fos", "gul")]


def _record(
    number: int, statistics: PlayStatistics = NOT_PLAYED, *, skill: str = "a", proven: bool = False
) -> EnvironmentRecord:
    """A record with words and statements of its own."""
    rng = random.Random(number)
    statements = " ".join(rng.choice(_TOKENS) for _ in range(60))
    source = f"# {' '.join(rng.sample(_WORDS, 4))}\nnumber = {number}\n{statements}"
    return EnvironmentRecord.create(source, "NumberEnv", skill=skill, statistics=statistics, proven=proven)


def _fill(memory: Memory, statistics: Sequence[PlayStatistics], *, proven: Sequence[int] = ()) -> None:
    memory.add_many(_record(number, one, proven=number in proven) for number, one in enumerate(statistics))


def _number(record: EnvironmentRecord) -> int:
    return int(record.source.split("number = ")[1].split("\n")[0])


def _drawn(memory: Memory, n: int = 2, draws: int = 200) -> set[int]:
    rng = random.Random(0)
    return {_number(one) for _ in range(draws) for one in memory.exemplars("a", rng, n)}


def test_exemplars_come_from_the_ten_of_highest_regret(memory: Memory) -> None:
    # Win rate .5, hinted win rate .50, .51, ... : regret grows with the number, 0.00 to 0.14.
    _fill(memory, [played((50, 100), (50 + number, 100)) for number in range(15)])
    assert _drawn(memory, n=1) == set(range(5, 15))
    assert _drawn(memory, n=2) <= set(range(5, 15))
    assert _drawn(memory, n=4) <= set(range(3, 15))  # 3 n = 12
    assert len(memory.exemplars("a", random.Random(1), 12)) == 12


def test_without_hinted_plays_regret_counts_as_zero(memory: Memory) -> None:
    worse = [played((50, 100), (20, 100)) for _ in range(10)]  # the hint hurts: regret -.3
    _fill(memory, [*worse, played((1, 2))])
    drawn = _drawn(memory, n=1)
    assert 10 in drawn
    assert len(drawn) == 10


def test_missing_exemplars_are_filled_with_unplayed_proven_ones(memory: Memory) -> None:
    _fill(memory, [played((1, 2), (2, 2)), NOT_PLAYED, NOT_PLAYED, played((2, 2))], proven=(1, 3))
    for n, expected in ((1, [0]), (2, [0, 1]), (5, [0, 1])):
        assert [_number(one) for one in memory.exemplars("a", random.Random(0), n)] == expected
    assert memory.exemplars("other", random.Random(0), 2) == []


def test_negatives_are_mastered_or_hopeless(memory: Memory) -> None:
    _fill(memory, [played((wins, 100)) for wins in (91, 9, 90, 10, 50)])
    rng = random.Random(0)
    drawn = [memory.negative("a", rng) for _ in range(60)]
    assert {_number(one) for one in drawn if one} == {0, 1}
    assert memory.negative("other", rng) is None


@pytest.mark.parametrize("capacity", range(8))
def test_eviction_keeps_the_frontier_and_drops_the_oldest_settled_first(memory: Memory, capacity: int) -> None:
    _fill(
        memory,
        [
            played((5, 10)),  # frontier
            played((10, 10)),  # mastered
            NOT_PLAYED,
            played((0, 10)),  # hopeless
            played((88, 100)),  # in between
            played((2, 10)),  # frontier
        ],
    )
    order = [1, 3, 2, 4, 0, 5]
    assert [_number(memory.get(id)) for id in memory.evict(capacity)] == order[: max(0, 6 - capacity)]


def test_a_negative_capacity_is_refused(memory: Memory) -> None:
    with pytest.raises(ValueError, match="capacity"):
        memory.evict(-1)


def test_the_window_is_the_newest_live_records_of_all_skills(tmp_path: Path) -> None:
    frontier = played((1, 2), (2, 2))
    with Memory.open(tmp_path, embedder=HashedTokenEmbedder(), capacity=3) as memory:
        for number, skill in enumerate(["a", "a", "b", "a", "b"]):
            memory.add(_record(number, frontier, skill=skill, proven=True))
        assert _drawn(memory, n=5) == {3}  # of the newest three, one has skill a
        assert memory.exemplars("c", random.Random(0)) == []
        assert memory.negative("a", random.Random(0)) is None
        memory.record_plays(_record(3).id, [1.0] * 38, hinted=False)  # 39 of 40
        assert memory.exemplars("a", random.Random(0)) == []
        found = memory.negative("a", random.Random(0))
        assert found is not None
        assert _number(found) == 3
        assert memory.evict() == [_record(3).id, _record(0).id]
        assert _drawn(memory) == {1}


def test_the_same_seed_draws_the_same(memory: Memory) -> None:
    _fill(memory, [played((1, 2), (2, 2)) for _ in range(30)])
    draws = [[one.id for one in memory.exemplars("a", random.Random(7))] for _ in range(2)]
    assert draws[0] == draws[1]
    assert any(draws[0] != [one.id for one in memory.exemplars("a", random.Random(seed))] for seed in range(5))


def test_grades_follow_plays_and_their_rollback(memory: Memory) -> None:
    _fill(memory, [NOT_PLAYED])
    position = memory.position()
    memory.record_plays(_record(0).id, [1.0, 0.0], hinted=False, run="r")
    assert _drawn(memory) == {0}
    memory.commit_round("r", 0, [], {}, plays=[(_record(0).id, [1.0] * 98, False)])
    assert _drawn(memory) == set()
    assert memory.negative("a", random.Random(0)) is not None
    memory.rollback("r", position)
    assert memory.negative("a", random.Random(0)) is None
