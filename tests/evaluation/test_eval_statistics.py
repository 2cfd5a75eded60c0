"""Intervals and paired tests."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spade_train.evaluation.compare import verdict
from spade_train.evaluation.statistics import bootstrap_interval, compare_paired, mcnemar


@given(st.integers(0, 30), st.integers(0, 30))
def test_mcnemar_is_the_binomial_test(first: int, second: int) -> None:
    changed = first + second
    tail = sum(Fraction(math.comb(changed, k), 2**changed) for k in range(min(first, second) + 1))
    assert mcnemar(first, second) == pytest.approx(float(min(Fraction(1), 2 * tail)))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=40), st.integers(0, 5))
def test_an_interval_holds_the_mean_and_repeats(values: list[float], seed: int) -> None:
    low, high = bootstrap_interval(values, seed=seed, resamples=500)
    assert bootstrap_interval(values, seed=seed, resamples=500) == (low, high)
    mean = math.fsum(values) / len(values)
    assert min(values) - 1 <= low <= mean + 1e-9 or low <= mean + 0.05
    assert -1e-9 <= low <= high <= 1 + 1e-9


def test_the_bootstrap_covers_as_often_as_it_says() -> None:
    import random

    rng = random.Random(1)
    covered = 0
    for trial in range(200):
        values = [float(rng.random() < 0.3) for _ in range(80)]
        low, high = bootstrap_interval(values, seed=trial, resamples=400)
        covered += low <= 0.3 <= high
    assert 0.88 <= covered / 200 <= 0.99


def test_equal_values_have_an_interval_of_some_width() -> None:
    assert bootstrap_interval([1.0] * 8)[0] < 0.7
    assert bootstrap_interval([0.0] * 8)[1] > 0.3


def test_a_clear_difference_is_called_one_and_chance_is_not() -> None:
    base = {f"q{n}": 0.0 for n in range(60)}
    better = {key: float(place % 2 == 0) for place, key in enumerate(base)}
    paired = compare_paired(base, better)
    assert paired.clear
    assert (paired.first_only, paired.second_only, paired.test) == (0, 30, "McNemar's exact test")
    assert verdict("A", "B", paired).startswith("B is better than A: B 50.0 % against A 0.0 %: +50.0 points")
    assert verdict("A", "B", compare_paired(better, base)).startswith("A is better than B")
    same = compare_paired(base, base)
    assert not same.clear
    assert verdict("A", "B", same).startswith("No difference can be told from chance")


def test_shares_are_compared_by_the_paired_bootstrap() -> None:
    first = {f"q{n}": (n % 5) / 8 for n in range(40)}
    second = {key: value + 0.25 for key, value in first.items()}
    paired = compare_paired(first, second)
    assert paired.test == "paired bootstrap"
    assert paired.difference == pytest.approx(0.25)
    assert paired.clear


def test_nothing_in_common_is_no_comparison() -> None:
    with pytest.raises(ValueError, match="no question in common"):
        compare_paired({"a": 1.0}, {"b": 1.0})
