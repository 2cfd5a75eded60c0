"""Intervals against published figures, and against what they promise."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spade_envs.calibration import difference_interval, mean_interval, wilson

FRACTIONS = st.floats(0, 1, allow_nan=False)


def test_wilson_gives_the_published_figures() -> None:
    # Newcombe 1998, Statistics in Medicine 17, 857-872, table I, method 3.
    assert wilson(81 / 263, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert wilson(15 / 148, 148) == pytest.approx((0.0624, 0.1605), abs=5e-5)
    assert wilson(0.0, 20) == pytest.approx((0.0, 0.1611), abs=5e-5)
    assert wilson(1 / 29, 29) == pytest.approx((0.0061, 0.1718), abs=5e-5)


def test_the_difference_gives_the_published_figures() -> None:
    # Newcombe 1998, Statistics in Medicine 17, 873-890, table II, method 10.
    def ones(successes: int, plays: int) -> list[float]:
        return [1.0] * successes + [0.0] * (plays - successes)

    assert difference_interval(ones(56, 70), ones(48, 80)) == pytest.approx((0.0524, 0.3339), abs=5e-5)
    assert difference_interval(ones(9, 10), ones(3, 10)) == pytest.approx((0.1705, 0.8090), abs=5e-5)
    assert difference_interval(ones(10, 10), ones(0, 10)) == pytest.approx((0.6075, 1.0), abs=5e-5)


def test_nothing_played_says_nothing() -> None:
    assert wilson(0.5, 0) == (0.0, 1.0)
    assert mean_interval([], -1.0) == (-1.0, 1.0)
    assert difference_interval([], [1.0]) == (-1.0, 1.0)


def test_what_is_no_proportion_is_refused() -> None:
    with pytest.raises(ValueError, match="mean in"):
        wilson(1.2, 4)
    with pytest.raises(ValueError, match="confidence"):
        wilson(0.5, 4, 1.0)


@given(st.lists(FRACTIONS, min_size=1, max_size=40))
def test_an_interval_holds_its_mean_and_stays_in_range(values: list[float]) -> None:
    low, high = mean_interval(values)
    assert 0 <= low <= sum(values) / len(values) + 1e-9
    assert sum(values) / len(values) - 1e-9 <= high <= 1


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=20), st.lists(st.floats(-1, 1), min_size=1, max_size=20))
def test_a_difference_turns_round(first: list[float], second: list[float]) -> None:
    low, high = difference_interval(first, second, -1.0)
    assert difference_interval(second, first, -1.0) == pytest.approx((-high, -low), abs=1e-9)


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    """Exactly, by the binomial distribution: on average over chances 95 %, nowhere much less."""
    plays = 16
    intervals = [wilson(wins / plays, plays) for wins in range(plays + 1)]
    coverages = []
    for chance in (number / 200 for number in range(10, 191)):
        weights = [math.comb(plays, wins) * chance**wins * (1 - chance) ** (plays - wins) for wins in range(plays + 1)]
        coverages.append(sum(w for w, (low, high) in zip(weights, intervals, strict=True) if low <= chance <= high))
    assert sum(coverages) / len(coverages) == pytest.approx(0.95, abs=0.01)
    assert min(coverages) > 0.88
