"""The Vendi score against values worked out by hand, and draws that avoid versions of one idea."""

from __future__ import annotations

import math
import random
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from memory_programs import AUCTION, MAZE, PLAIN, played, renamed

from spade_envs.memory import Memory, vendi_score
from spade_envs.memory.diversity import farthest_first, first_of_each
from spade_envs.record import EnvironmentRecord


@pytest.mark.parametrize("n", [1, 2, 7, 300])
def test_equal_vectors_count_as_one(n: int) -> None:
    assert vendi_score(np.tile([3.0, 4.0], (n, 1))) == pytest.approx(1.0)


@pytest.mark.parametrize("n", [1, 2, 7, 100])
def test_orthogonal_vectors_count_each(n: int) -> None:
    assert vendi_score(5 * np.eye(n, n + 3)) == pytest.approx(n)


def test_values_worked_out_by_hand() -> None:
    # Two vectors of cosine c: eigenvalues of K/2 are (1 ± c)/2.
    for cosine in (0.0, 0.3, 0.8):
        expected = math.exp(-sum(p * math.log(p) for p in ((1 + cosine) / 2, (1 - cosine) / 2)))
        assert vendi_score([[1.0, 0.0], [cosine, math.sqrt(1 - cosine**2)]]) == pytest.approx(expected)
    # Three of one kind and one of another: eigenvalues 3/4 and 1/4.
    expected = math.exp(-(0.75 * math.log(0.75) + 0.25 * math.log(0.25)))
    assert vendi_score([[1, 0], [1, 0], [2, 0], [0, 1]]) == pytest.approx(expected)
    # A kind twice as often, in each of two kinds, is the same distribution.
    assert vendi_score([[1, 0], [0, 1]] * 50) == pytest.approx(2.0)


def test_vectors_without_direction_are_unlike_everything() -> None:
    assert vendi_score([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]]) == pytest.approx(3.0)
    assert vendi_score(np.zeros((0, 4))) == 0.0


def test_wrong_shapes_and_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match=r"shape \(n, d\), got \(3,\)"):
        vendi_score([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="finite"):
        vendi_score([[1.0, float("nan")]])


@given(arrays(np.float64, st.tuples(st.integers(1, 12), st.integers(1, 5)), elements=st.floats(-10, 10)))
@settings(max_examples=100, deadline=None)
def test_the_score_lies_between_one_and_n_and_ignores_order_and_length(vectors: np.ndarray) -> None:
    vectors = np.where(np.abs(vectors) < 1e-3, 0.0, vectors)
    score = vendi_score(vectors)
    assert 1 - 1e-6 <= score <= len(vectors) + 1e-6
    assert vendi_score(3 * vectors[::-1]) == pytest.approx(score)


def test_only_the_first_of_similar_ones_is_kept() -> None:
    similarity = np.array([[1.0, 0.95, 0.2, 0.1], [0.95, 1.0, 0.2, 0.1], [0.2, 0.2, 1.0, 0.9], [0.1, 0.1, 0.9, 1.0]])
    assert first_of_each(similarity, 9, 0.9) == [0, 2]
    assert first_of_each(similarity, 9, 0.91) == [0, 2, 3]
    assert first_of_each(similarity, 1, 0.9) == [0]


def test_each_next_one_is_the_farthest() -> None:
    places = np.array([0.0, 1.0, 10.0, 5.2, 9.9])
    similarity = -np.abs(places[:, None] - places)
    rng = random.Random(0)
    assert farthest_first(similarity, rng, 3, given=[0], among=[1, 2, 3, 4]) == [2, 3, 1]
    firsts = {farthest_first(similarity, rng, 1, among=[0, 1, 2])[0] for _ in range(50)}
    assert firsts == {0, 1, 2}
    assert farthest_first(similarity, rng, 9, among=[1, 2]) in ([1, 2], [2, 1])
    assert farthest_first(similarity, rng, 0, given=[1], among=[2]) == []


def _versions(source: str, count: int) -> list[str]:
    """The same game with other numbers, texts and a line more or less."""
    made = [source, renamed(source)]
    for number in range(2, count):
        text = re.sub(r"\b\d\b", lambda match, n=number: str((int(match.group()) + n) % 10), source)  # type: ignore[misc]
        made.append(text.replace("self.turn = 0", f"self.turn = 0\n        self.extra_{number} = None"))
    return made


@pytest.mark.parametrize("seed", range(20))
def test_exemplars_are_of_different_ideas(memory: Memory, seed: int) -> None:
    # Five versions of the maze have the highest regrets; two other games come after them.
    for number, source in enumerate(_versions(MAZE, 5)):
        statistics = played((4, 10), (10 - number % 2, 10))
        memory.add(EnvironmentRecord.create(source, "MazeEnv", skill="s", statistics=statistics))
    for source in (AUCTION, PLAIN):
        memory.add(EnvironmentRecord.create(source, "OtherEnv", skill="s", statistics=played((5, 10), (6, 10))))
    for n in (2, 3):
        drawn = memory.exemplars("s", random.Random(seed), n)
        assert len(drawn) == n
        assert sum("maze" in one.source.lower() or "labyrinth" in one.source.lower() for one in drawn) <= 1


def test_versions_do_not_crowd_out_what_lies_below_them(memory: Memory) -> None:
    for source in _versions(MAZE, 14):
        memory.add(EnvironmentRecord.create(source, "MazeEnv", skill="s", statistics=played((2, 10), (10, 10))))
    memory.add(EnvironmentRecord.create(AUCTION, "AuctionEnv", skill="s", statistics=played((5, 10), (6, 10))))
    for seed in range(10):
        assert {one.name for one in memory.exemplars("s", random.Random(seed))} == {"MazeEnv", "AuctionEnv"}


def test_vectors_of_live_records(tmp_path: Path) -> None:
    with Memory.open(tmp_path) as memory:
        memory.add_many(EnvironmentRecord.create(source, "AnyEnv") for source in (MAZE, AUCTION, PLAIN))
        memory.evict(2)
        ids, vectors = memory.vectors()
        assert ids == [one.id for one in memory.records()]
        assert vectors.shape[0] == 2
        assert 1 < vendi_score(vectors) < 2
