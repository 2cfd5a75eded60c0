"""Which records the designer sees and which leave its window: the paper's memory policy, as pure functions.

Source: SPADE (arXiv 2608.19197): 200 newest environments; exemplars are drawn from the highest regret among win
rates in [0.15, 0.85] of the same skill; one negative has a win rate above 0.9 or below 0.1. The size of the pool
the exemplars are drawn from, ``max(3 n, 10)``, is that of the authors' code.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from ..record import PlayStatistics

LEARNABLE = (0.15, 0.85)
"""Win rates (inclusive) of environments at the learning frontier."""
SETTLED = (0.1, 0.9)
"""Win rates below (hopeless) or above (mastered) teach nothing more."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What the policy needs to know of one record; a larger ``seq`` is newer."""

    seq: int
    id: str
    proven: bool
    statistics: PlayStatistics

    @property
    def learnable(self) -> bool:
        """Whether the win rate is known and lies on the frontier."""
        rate = self.statistics.win_rate
        return rate is not None and LEARNABLE[0] <= rate <= LEARNABLE[1]

    @property
    def settled(self) -> bool:
        """Whether the win rate is known and the environment is mastered or hopeless."""
        rate = self.statistics.win_rate
        return rate is not None and not SETTLED[0] <= rate <= SETTLED[1]


def choose_exemplars(window: Sequence[Standing], rng: random.Random, n: int) -> list[str]:
    """Draw up to ``n`` ids: from the top of the frontier by regret, then unplayed environments with a proof.

    Without hinted plays the regret counts as 0; ties go to the newer record.
    """
    frontier = sorted(
        (one for one in window if one.learnable), key=lambda one: (-(one.statistics.regret or 0.0), -one.seq)
    )
    pool = frontier[: max(3 * n, 10)]
    chosen = rng.sample(pool, min(n, len(pool)))
    if len(chosen) < n:
        unplayed = sorted((one for one in window if one.proven and _unplayed(one)), key=lambda one: one.seq)
        chosen += rng.sample(unplayed, min(n - len(chosen), len(unplayed)))
    return [one.id for one in chosen]


def choose_negative(window: Sequence[Standing], rng: random.Random) -> str | None:
    """Draw the id of one mastered or hopeless environment, or None."""
    settled = sorted((one for one in window if one.settled), key=lambda one: one.seq)
    return rng.choice(settled).id if settled else None


def choose_evicted(standings: Sequence[Standing], capacity: int) -> list[str]:
    """Return the ids beyond ``capacity``: settled ones go first, then unplayed and in-between, the frontier last.

    Within each of the three the oldest goes first.
    """
    if capacity < 0:
        raise ValueError(f"capacity must be 0 or more, got {capacity}")
    excess = max(0, len(standings) - capacity)
    ranked = sorted(standings, key=lambda one: (0 if one.settled else 2 if one.learnable else 1, one.seq))
    return [one.id for one in ranked[:excess]]


def _unplayed(one: Standing) -> bool:
    return one.statistics.plain_plays == 0
