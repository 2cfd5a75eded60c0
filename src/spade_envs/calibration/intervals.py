"""Confidence intervals of a few plays: score intervals, which stay honest at 0 of 8 and at 8 of 8.

A bootstrap of eight equal returns has no width at all; Wilson's interval has. Returns that are not 0 or 1 are
bounded, and a bounded variable with mean p varies at most as much as a coin with that mean: the same formula is then
conservative.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

Interval = tuple[float, float]


def wilson(mean: float, plays: int, confidence: float = 0.95) -> Interval:
    """Return Wilson's score interval of a proportion (Wilson 1927, JASA 22, 209–212).

    Args:
        mean: successes divided by plays, or the mean of values in [0, 1].
        plays: how many there were; none gives (0, 1).
        confidence: of the two-sided interval, in (0, 1).

    Raises:
        ValueError: if the mean lies outside [0, 1], or the confidence outside (0, 1).
    """
    if not 0.0 <= mean <= 1.0 or not 0.0 < confidence < 1.0:
        raise ValueError(f"expected a mean in [0, 1] and a confidence in (0, 1), got {mean} and {confidence}")
    if plays <= 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    scale = 1.0 + z * z / plays
    centre = (mean + z * z / (2 * plays)) / scale
    reach = z / scale * math.sqrt(mean * (1.0 - mean) / plays + z * z / (4.0 * plays * plays))
    low, high = max(0.0, centre - reach), min(1.0, centre + reach)
    return (0.0 if mean == 0.0 else low), (1.0 if mean == 1.0 else high)


def mean_interval(values: Sequence[float], lowest: float = 0.0, confidence: float = 0.95) -> Interval:
    """Return Wilson's interval of the mean of ``values``, which lie in [``lowest``, 1]."""
    width = 1.0 - lowest
    if not values:
        return lowest, 1.0
    scaled = min(1.0, max(0.0, (math.fsum(values) / len(values) - lowest) / width))
    low, high = wilson(scaled, len(values), confidence)
    return lowest + low * width, lowest + high * width


def difference_interval(
    first: Sequence[float], second: Sequence[float], lowest: float = 0.0, confidence: float = 0.95
) -> Interval:
    """Return an interval of mean(first) - mean(second): Newcombe's hybrid of two Wilson intervals.

    Method 10 of Newcombe 1998 (Statistics in Medicine 17, 873–890); both hold values in [``lowest``, 1]. Without
    values in one of them the interval is the whole range.
    """
    if not first or not second:
        return lowest - 1.0, 1.0 - lowest
    one, two = (math.fsum(values) / len(values) for values in (first, second))
    low_1, high_1 = mean_interval(first, lowest, confidence)
    low_2, high_2 = mean_interval(second, lowest, confidence)
    difference = one - two
    return (
        difference - math.hypot(one - low_1, high_2 - two),
        difference + math.hypot(high_1 - one, two - low_2),
    )
