"""What the designer is paid for one program: pure functions of win rates and returns.

Quantities follow SPADE (arXiv 2608.19197). The rate of an environment's plain plays is taken over all rollouts of
its window; the regret over the first rollout alone, where hinted and plain plays are equally many and by the same
weights. Advantages are made from the rewards in :mod:`spade_train.advantages`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Literal

from spade_envs.record import WIN_RETURN

DesignerReward = Literal["blend", "regret", "plateau", "solve_rate", "solve_variance", "learning_potential", "micro_lp"]
DESIGNER_REWARDS: tuple[DesignerReward, ...] = (
    *("blend", "regret", "plateau", "solve_rate", "solve_variance", "learning_potential", "micro_lp"),
)  # fmt: skip
HINTED_REWARDS = frozenset({"blend", "regret"})
"""Designer rewards that need hinted plays."""
WINDOW_REWARDS = frozenset({"micro_lp"})
"""Designer rewards that need more than one rollout of an environment."""

LEARNABLE = (0.2, 0.8)
"""Win rates of an environment from which an agent can learn."""


def win_rate(returns: Sequence[float]) -> float:
    """Return the share of episodes won."""
    return fmean(value >= WIN_RETURN for value in returns)


def regret(hinted: Sequence[float], plain: Sequence[float]) -> float:
    """Return the mean return with the hint minus the mean return without it; may be negative.

    Raises:
        ValueError: if the two were not played equally often, which would bias the comparison.
    """
    if len(hinted) != len(plain) or not plain:
        raise ValueError(f"regret needs equally many hinted and plain plays, got {len(hinted)} and {len(plain)}")
    return fmean(hinted) - fmean(plain)


def plateau(rate: float, band: tuple[float, float] = (0.4, 0.6), ramp: float = 0.25) -> float:
    """Return 1 for a win rate inside ``band``, falling linearly to 0 over ``ramp`` on both sides."""
    low, high = band
    distance = max(low - rate, rate - high, 0.0)
    return max(0.0, 1.0 - distance / ramp)


def solve_variance(rate: float) -> float:
    """Return ``4 p (1 - p)`` of the win rate ``p``: the variance of winning, scaled to [0, 1]."""
    return 4.0 * rate * (1.0 - rate)


def moving_average(before: float | None, value: float, rate: float) -> float:
    """Return the exponential moving average after ``value``: ``(1 - rate) before + rate value``.

    ``rate`` is the weight of the newest value. Only so does the paper's naming hold, by which 0.98 is the fast
    average (it nearly equals the newest value) and 0.85 the slow one; read as the weight of the past, 0.98 would be
    the slower of the two. The first value is the average itself.
    """
    return value if before is None else (1.0 - rate) * before + rate * value


def learning_potential(rate: float, slow: float) -> float:
    """Return ``|win rate - slow average|``: how far an environment lies from what its skill usually gives.

    ``slow`` is the slow :func:`moving_average` of the skill's win rate (mean over its environments of a window,
    this window's included). It is kept by skill, since an environment lives for one window only and has no past of
    its own.
    """
    return abs(rate - slow)


def micro_lp(rates: Sequence[float]) -> float:
    """Return the least-squares slope of the win rate over the rollouts of a window, in win rate per rollout.

    With ``k`` rates at 0 .. k-1: ``sum((t - mean t)(w_t - mean w)) / sum((t - mean t)^2)``. Negative where the agent
    grew worse; 0 for a single rollout, which has no slope.
    """
    if len(rates) < 2:
        return 0.0
    centre, mean = (len(rates) - 1) / 2.0, fmean(rates)
    above = sum((time - centre) * (rate - mean) for time, rate in enumerate(rates))
    return above / sum((time - centre) ** 2 for time in range(len(rates)))


@dataclass(frozen=True, slots=True)
class Penalties:
    """Designer rewards of programs that cannot be played."""

    invalid: float = 0.0
    duplicate: float = 0.0
    timeout: float = -0.5
    quarantined: float = -0.5  # stopped by the sandbox for good


@dataclass(frozen=True, slots=True)
class Pay:
    """How the designer is paid; the defaults are the paper's as deployed."""

    kind: DesignerReward = "blend"
    penalties: Penalties = field(default_factory=Penalties)
    band: tuple[float, float] = (0.4, 0.6)  # of the plateau
    ramp: float = 0.25
    plateau_share: float = 0.6  # of the blend
    regret_share: float = 0.4
    regret_scale: float = 0.15  # regret that earns the whole share
    fast_rate: float = 0.98  # of the moving averages of each skill
    slow_rate: float = 0.85

    def blend(self, rate: float, gain: float) -> float:
        """Return ``0.6 plateau(rate) + 0.4 min(1, max(0, gain) / 0.15)``, with the shares and scale given.

        Args:
            rate: win rate of the plain plays over the window.
            gain: the regret at the first rollout.
        """
        share = min(1.0, max(0.0, gain) / self.regret_scale)
        return self.plateau_share * plateau(rate, self.band, self.ramp) + self.regret_share * share


@dataclass(frozen=True, slots=True)
class DesignOutcome:
    """What became of one written program over its window.

    ``rollouts`` holds the plain returns of each rollout. ``copies`` counts the same program within the cycle, itself
    included. ``slow`` is the slow moving average of the skill's win rate.
    """

    status: str  # "admitted", "duplicate", "failed" in play, or a reason of refusal
    rollouts: tuple[tuple[float, ...], ...] = ()
    hinted: tuple[float, ...] = ()  # at the first rollout
    timed_out: bool = False
    quarantined: bool = False
    copies: int = 1
    slow: float | None = None

    @property
    def plain(self) -> tuple[float, ...]:
        """All plain returns."""
        return tuple(value for returns in self.rollouts for value in returns)


def designer_reward(pay: Pay, outcome: DesignOutcome) -> float:
    """Return the raw reward of the designer for one program.

    Equal programs of one cycle share one reward: each copy gets its part, so that repeating oneself does not pay. What
    is below 0 (``micro_lp``) is not shared: copies would make the loss smaller.
    """
    penalties = pay.penalties
    if outcome.quarantined:
        return penalties.quarantined
    if outcome.timed_out:
        return penalties.timeout
    if outcome.status == "duplicate":
        return penalties.duplicate
    if outcome.status != "admitted" or not outcome.plain:
        return penalties.invalid
    rate = win_rate(outcome.plain)
    match pay.kind:
        case "blend":
            value = pay.blend(rate, regret(outcome.hinted, outcome.rollouts[0]))
        case "regret":
            value = max(0.0, regret(outcome.hinted, outcome.rollouts[0]))
        case "plateau" | "solve_rate":
            value = plateau(rate, pay.band, pay.ramp)
        case "solve_variance":
            value = solve_variance(rate)
        case "learning_potential":
            value = learning_potential(rate, rate if outcome.slow is None else outcome.slow)
        case "micro_lp":
            value = micro_lp([win_rate(returns) for returns in outcome.rollouts])
    return value / outcome.copies if value > 0.0 else value
