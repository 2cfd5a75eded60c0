"""Rewards of both roles and the advantages that the update uses. Pure functions of returns and rows.

Quantities follow SPADE (arXiv 2608.19197): the designer is paid by hint-based regret, as deployed
``0.6 plateau(win rate) + 0.4 min(1, max(0, regret) / 0.15)``; the agent by its return, standardised within one
environment; the rarer role is weighted up, at most 50 times.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Any, Literal

from spade_envs.record import WIN_RETURN
from spade_train.rows import Row

DesignerReward = Literal["blend", "regret", "plateau", "solve_variance"]
DESIGNER_REWARDS: tuple[DesignerReward, ...] = ("blend", "regret", "plateau", "solve_variance")
HINTED_REWARDS = frozenset({"blend", "regret"})
"""Designer rewards that need hinted plays."""

MAX_ROLE_WEIGHT = 50.0
LEARNABLE = (0.2, 0.8)
"""Win rates of an environment from which an agent can learn."""

_PLATEAU = (0.4, 0.6)
_RAMP = 0.25
_REGRET_SCALE = 0.15
_NO_SIGNAL = 1e-8


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


def plateau(rate: float) -> float:
    """Return 1 for a win rate in [0.4, 0.6], falling linearly to 0 over 0.25 on both sides."""
    low, high = _PLATEAU
    distance = max(low - rate, rate - high, 0.0)
    return max(0.0, 1.0 - distance / _RAMP)


def blend(hinted: Sequence[float], plain: Sequence[float]) -> float:
    """Return the designer reward as deployed in the paper, in [0, 1]."""
    gain = min(1.0, max(0.0, regret(hinted, plain)) / _REGRET_SCALE)
    return 0.6 * plateau(win_rate(plain)) + 0.4 * gain


def solve_variance(plain: Sequence[float]) -> float:
    """Return ``4 p (1 - p)`` of the win rate ``p``: the variance of winning, scaled to [0, 1]."""
    rate = win_rate(plain)
    return 4.0 * rate * (1.0 - rate)


@dataclass(frozen=True, slots=True)
class Penalties:
    """Designer rewards of programs that cannot be played."""

    invalid: float = 0.0
    duplicate: float = 0.0
    timeout: float = -0.5


@dataclass(frozen=True, slots=True)
class DesignOutcome:
    """What became of one written program. ``copies`` counts the same program within the cycle, itself included."""

    status: str  # "admitted", "duplicate", or a reason of refusal
    plain: tuple[float, ...] = ()
    hinted: tuple[float, ...] = ()
    timed_out: bool = False
    copies: int = 1


def designer_reward(kind: DesignerReward, outcome: DesignOutcome, penalties: Penalties) -> float:
    """Return the raw reward of the designer for one program.

    Equal programs of one cycle share one reward: each copy gets its part, so that repeating oneself does not pay.
    """
    if outcome.timed_out:
        return penalties.timeout
    if outcome.status == "duplicate":
        return penalties.duplicate
    if outcome.status != "admitted" or not outcome.plain:
        return penalties.invalid
    match kind:
        case "blend":
            value = blend(outcome.hinted, outcome.plain)
        case "regret":
            value = max(0.0, regret(outcome.hinted, outcome.plain))
        case "plateau":
            value = plateau(win_rate(outcome.plain))
        case "solve_variance":
            value = solve_variance(outcome.plain)
    return value / outcome.copies


def role_weights(designer_rows: int, agent_rows: int, *, delay: int = 1) -> dict[str, float]:
    """Return weights that bring the rarer role up to the other: ``agent rows / designer rows x delay``, at most 50.

    Args:
        designer_rows: rows of the designer with a reward.
        agent_rows: rows of the agent with a reward.
        delay: cycles for which one set of environments is played.
    """
    if not designer_rows or not agent_rows:
        return {"designer": 1.0, "agent": 1.0}
    ratio = agent_rows / designer_rows * delay
    if ratio >= 1.0:
        return {"designer": min(MAX_ROLE_WEIGHT, ratio), "agent": 1.0}
    return {"designer": 1.0, "agent": min(MAX_ROLE_WEIGHT, 1.0 / ratio)}


def advantages(rows: Sequence[Row], weights: Mapping[str, float], *, epsilon: float = 1e-4) -> list[float]:
    """Return one advantage for each row; they sum to zero within every (role, group).

    The agent's rewards are standardised within the group, the designer's only centred. Rows without a reward, and
    groups of one, get 0.

    Args:
        rows: the rows of one batch.
        weights: factor of each role.
        epsilon: added to the standard deviation.
    """
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for index, row in enumerate(rows):
        if row.role != "pad" and row.reward is not None:
            groups[row.role, row.group].append(index)
    result = [0.0] * len(rows)
    for (role, _), members in groups.items():
        rewards = [rows[index].reward or 0.0 for index in members]
        mean, spread = fmean(rewards), pstdev(rewards)
        if spread < _NO_SIGNAL:
            continue
        scale = weights.get(role, 1.0) / (spread + epsilon if role == "agent" else 1.0)
        values = [(reward - mean) * scale for reward in rewards]
        residue = fmean(values)
        for index, value in zip(members, values):
            result[index] = value - residue
    return result


class SpadeReward:
    """The one reward function of the trainer: turns rows into advantages that are ready for the update.

    The trainer's own baseline subtracts the mean over the rows of one cycle. Because every (role, group) sums to
    zero, so do those rows, and the baseline changes nothing; ``scale_rewards`` must be ``"none"``.

    Args:
        designer_weight: factor of the designer's advantages; None balances the roles with :func:`role_weights`.
        agent_weight: factor of the agent's advantages; None likewise.
        epsilon: added to the agent's standard deviations.
    """

    __name__ = "spade_advantage"

    def __init__(
        self, *, designer_weight: float | None = None, agent_weight: float | None = None, epsilon: float = 1e-4
    ) -> None:
        self._designer_weight, self._agent_weight, self._epsilon = designer_weight, agent_weight, epsilon

    def __call__(
        self,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        spade_row: Sequence[Row],
        log_metric: Callable[[str, float], None],
        log_extra: Callable[[str, list[Any]], None],
        spade_metrics: Sequence[Mapping[str, float]] = (),
        **_: Any,
    ) -> list[float]:
        """Return one advantage for each row, and log the cycle's metrics."""
        rewarded = {role: sum(row.role == role and row.reward is not None for row in spade_row)
                    for role in ("designer", "agent")}  # fmt: skip
        weights = role_weights(rewarded["designer"], rewarded["agent"])
        if self._designer_weight is not None:
            weights["designer"] = self._designer_weight
        if self._agent_weight is not None:
            weights["agent"] = self._agent_weight
        result = advantages(spade_row, weights, epsilon=self._epsilon)
        for row, value in zip(spade_row, result, strict=True):
            row.advantage = value
        for name, value in advantage_metrics(spade_row, result).items():
            log_metric(name, value)
        log_metric("weight/designer", weights["designer"])
        for name, value in (spade_metrics[0] if spade_metrics else {}).items():
            log_metric(name, value)
        log_extra("role", [row.role for row in spade_row])
        log_extra("group", [row.group for row in spade_row])
        log_extra("raw_reward", [row.reward for row in spade_row])
        return result


def advantage_metrics(rows: Sequence[Row], values: Sequence[float]) -> dict[str, float]:
    """Return the spread of the advantages of each role and the share of its rows that carry none."""
    metrics: dict[str, float] = {}
    for role in ("designer", "agent"):
        mine = [value for row, value in zip(rows, values) if row.role == role]
        if mine:
            metrics[f"advantage/{role}_std"] = pstdev(mine)
            metrics[f"advantage/{role}_zero_share"] = fmean(abs(value) < _NO_SIGNAL for value in mine)
    metrics["advantage/padding_share"] = fmean(row.role == "pad" for row in rows) if rows else 0.0
    return metrics
