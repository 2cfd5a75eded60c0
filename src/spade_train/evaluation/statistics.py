"""Intervals and paired tests over questions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spade_envs.calibration.intervals import Interval, mean_interval

RESAMPLES = 10_000


def bootstrap_interval(
    values: Sequence[float], confidence: float = 0.95, seed: int = 0, resamples: int = RESAMPLES
) -> Interval:
    """Return the percentile bootstrap interval of a mean over questions (Efron and Tibshirani 1993, chapter 13).

    Questions are resampled, not answers: ``values`` holds one mean for each question. Where all values are equal the
    bootstrap has no width at all, whatever their number; Wilson's score interval stands in for it then.

    Args:
        values: in [0, 1], one for each question.
        confidence: of the two-sided interval.
        seed: of the resampling.
        resamples: how many.
    """
    if not values or max(values) == min(values):
        return mean_interval(values, 0.0, confidence)
    low, high = np.quantile(_resampled_means(values, seed, resamples), _tails(confidence))
    return float(low), float(high)


def stratified_interval(
    groups: Sequence[Sequence[float]], confidence: float = 0.95, seed: int = 0, resamples: int = RESAMPLES
) -> Interval:
    """Return the bootstrap interval of a mean of groups' means: questions are resampled within their group."""
    if all(max(values) == min(values) for values in groups):
        return mean_interval([value for values in groups for value in values], 0.0, confidence)
    means = [_resampled_means(values, seed + place, resamples) for place, values in enumerate(groups)]
    low, high = np.quantile(np.mean(means, axis=0), _tails(confidence))
    return float(low), float(high)


def _resampled_means(values: Sequence[float], seed: int, resamples: int) -> np.ndarray:
    array = np.asarray(values, dtype=np.float64)
    rng = np.random.default_rng(seed)
    means = np.empty(resamples)
    step = max(1, 4_000_000 // len(array))  # of indices at once: memory stays small
    for start in range(0, resamples, step):
        count = min(step, resamples - start)
        means[start : start + count] = array[rng.integers(0, len(array), (count, len(array)))].mean(axis=1)
    return means


def _tails(confidence: float) -> tuple[float, float]:
    return (1 - confidence) / 2, (1 + confidence) / 2


def mcnemar(first_only: int, second_only: int) -> float:
    """Return the two-sided p of McNemar's exact test: the binomial test of the questions that changed.

    Args:
        first_only: questions that only the first answered correctly.
        second_only: that only the second did.
    """
    changed = first_only + second_only
    if not changed:
        return 1.0
    fewer = min(first_only, second_only)
    tail = math.fsum(math.exp(_log_choose(changed, k) - changed * math.log(2)) for k in range(fewer + 1))
    return min(1.0, 2.0 * tail)


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


@dataclass(frozen=True, slots=True)
class Paired:
    """A paired comparison: the second minus the first, over the questions that both answered."""

    questions: int
    first: float
    second: float
    difference: float
    interval: Interval
    p: float
    test: str
    first_only: int  # questions on which the first did better
    second_only: int

    @property
    def clear(self) -> bool:
        """Whether the difference is more than chance at the 5 % level."""
        return self.p < 0.05


def compare_paired(first: Mapping[str, float], second: Mapping[str, float], seed: int = 0) -> Paired:
    """Compare two runs question by question.

    McNemar's exact test where every question is right or wrong; else the paired bootstrap, whose p is twice the
    smaller share of resampled differences on either side of 0 (at least 1 / resamples).

    Args:
        first, second: mean score of each question by its id.
        seed: of the resampling.

    Raises:
        ValueError: if they have no question in common.
    """
    ids = sorted(first.keys() & second.keys())
    if not ids:
        raise ValueError("the two runs have no question in common")
    one, two = [first[i] for i in ids], [second[i] for i in ids]
    differences = [b - a for a, b in zip(one, two)]
    worse, better = sum(d < 0 for d in differences), sum(d > 0 for d in differences)
    if min(differences) == max(differences):
        interval = (differences[0], differences[0])
        means = np.asarray(differences)
    else:
        means = _resampled_means(differences, seed, RESAMPLES)
        low, high = np.quantile(means, _tails(0.95))
        interval = float(low), float(high)
    if set(one) | set(two) <= {0.0, 1.0}:
        p, test = mcnemar(worse, better), "McNemar's exact test"
    else:
        share = min(float((means <= 0).mean()), float((means >= 0).mean()))
        p, test = min(1.0, max(2 * share, 1 / RESAMPLES)), "paired bootstrap"
    mean = math.fsum(differences) / len(ids)
    return Paired(
        *(len(ids), math.fsum(one) / len(ids), math.fsum(two) / len(ids), mean, interval, p, test, worse, better)
    )
