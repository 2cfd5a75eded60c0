"""How records stand: which ones the designer may see and which leave its window. Pure functions.

Source: SPADE (arXiv 2608.19197): 200 newest environments; exemplars are drawn from the highest regret among win
rates in [0.15, 0.85] of the same skill; one negative has a win rate above 0.9 or below 0.1. The size of the pool
the exemplars are drawn from, ``max(3 n, 10)``, is that of the authors' code.
"""

from __future__ import annotations

from ..record import PlayStatistics

LEARNABLE = (0.15, 0.85)
"""Win rates (inclusive) of environments at the learning frontier."""
SETTLED = (0.1, 0.9)
"""Win rates below (hopeless) or above (mastered) teach nothing more."""

# Grades are stored with the records, so their numbers are part of the database's layout.
UNPLAYED, PROVEN, HOPELESS_OR_MASTERED, BETWEEN, FRONTIER = range(5)


def grade(statistics: PlayStatistics, *, proven: bool) -> tuple[int, float]:
    """Return (grade, score). The score ranks the frontier: the regret, 0 without hinted plays; else 0.

    An environment that nobody has played is PROVEN if its solution was, else UNPLAYED.
    """
    rate = statistics.win_rate
    if rate is None:
        return (PROVEN if proven else UNPLAYED), 0.0
    if LEARNABLE[0] <= rate <= LEARNABLE[1]:
        return FRONTIER, statistics.regret or 0.0
    return (BETWEEN if SETTLED[0] <= rate <= SETTLED[1] else HOPELESS_OR_MASTERED), 0.0


def pool_size(n: int) -> int:
    """Return how many of the highest regret ``n`` exemplars are drawn from."""
    return max(3 * n, 10)
