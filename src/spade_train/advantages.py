"""From raw rewards to the advantages that the update uses, and the reward function that a trainer calls.

The agent's returns are standardised within one environment, the designer's rewards centred within one skill, the
hint writer's within one environment or skill; the rarer role is weighted up, at most 50 times (SPADE, arXiv
2608.19197).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, pstdev
from typing import Any, NamedTuple

from spade_train.rows import Row

MAX_ROLE_WEIGHT = 50.0
ROLES = ("designer", "hint", "agent")

_NO_SIGNAL = 1e-8


class Earned(NamedTuple):
    """What one rank knows of its rows; all ranks' together decide the centres and weights."""

    rewards: Sequence[tuple[str, str, float]]  # (role, group, reward) of the designer's and hint writer's rows
    counts: Mapping[str, int]  # rewarded rows by role


def role_weights(designer_rows: int, agent_rows: int, *, delay: int = 1) -> dict[str, float]:
    """Return weights that bring the rarer role up to the other: ``agent rows / designer rows x delay``, at most 50.

    Args:
        designer_rows: rows of the designer with a reward.
        agent_rows: rows of the agent with a reward.
        delay: rollouts for which one set of environments is played, so that the designer is trained once in so many.
    """
    if not designer_rows or not agent_rows:
        return {"designer": 1.0, "agent": 1.0}
    ratio = agent_rows / designer_rows * delay
    if ratio >= 1.0:
        return {"designer": min(MAX_ROLE_WEIGHT, ratio), "agent": 1.0}
    return {"designer": 1.0, "agent": min(MAX_ROLE_WEIGHT, 1.0 / ratio)}


def hint_weight(hint_rows: int, agent_rows: int) -> float:
    """Return ``agent rows / hint rows`` in [1, 50]."""
    return min(MAX_ROLE_WEIGHT, max(1.0, agent_rows / hint_rows)) if hint_rows and agent_rows else 1.0


def advantages(
    rows: Sequence[Row],
    weights: Mapping[str, float],
    *,
    epsilon: float = 1e-4,
    centres: Mapping[tuple[str, str], float] | None = None,
) -> list[float]:
    """Return one advantage for each row.

    The agent's rewards are standardised within the group, ``(r - mean) / (std + epsilon)``; the other roles' only
    centred. Rows without a reward, and groups without a spread, get 0. Without ``centres`` every (role, group) sums
    to zero over ``rows``.

    Args:
        rows: the rows of one batch.
        weights: factor of each role.
        epsilon: added to the standard deviation.
        centres: means of the groups that reach over several ranks; a group that is not in it is centred here.
    """
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for index, row in enumerate(rows):
        if row.role != "pad" and row.reward is not None:
            groups[row.role, row.group].append(index)
    result = [0.0] * len(rows)
    for (role, name), members in groups.items():
        rewards = [rows[index].reward or 0.0 for index in members]
        if centres is not None and (role, name) in centres:
            for index, reward in zip(members, rewards):
                result[index] = (reward - centres[role, name]) * weights.get(role, 1.0)
            continue
        mean, spread = fmean(rewards), pstdev(rewards)
        if spread < _NO_SIGNAL:
            continue
        scale = weights.get(role, 1.0) / (spread + epsilon if role == "agent" else 1.0)
        values = [(reward - mean) * scale for reward in rewards]
        residue = fmean(values)
        for index, value in zip(members, values):
            result[index] = value - residue
    return result


def balanced(rows: Sequence[Row], values: Sequence[float]) -> list[float]:
    """Return the advantages with what they sum to taken off the unused rows, so that a mean over all rows is zero.

    Groups that reach over several ranks sum to zero over all of them but not on each. A trainer that subtracts the
    mean of this rank's rows would then shift every advantage; unused rows are masked, so they can carry the balance
    without being trained on.

    Raises:
        ValueError: if there is a balance to carry and no unused row.
    """
    total = sum(values)
    if abs(total) < _NO_SIGNAL:
        return list(values)
    spare = [index for index, row in enumerate(rows) if row.role == "pad"]
    if not spare:
        raise ValueError("advantages that are centred over several ranks need at least one unused row on each rank")
    result = list(values)
    for index in spare:
        result[index] = -total / len(spare)
    return result


class SpadeReward:
    """The one reward function of the trainer: turns rows into advantages that are ready for the update.

    The trainer's own baseline subtracts the mean over the rows of one rank. On one rank every (role, group) sums to
    zero, so do those rows, and the baseline changes nothing. On several ranks the designer's and hint writer's groups
    are centred over all ranks (8 GPUs compare programs for one skill with each other) and unused rows carry what
    the rank's sum lacks; see :func:`balanced`. ``scale_rewards`` must be ``"none"``.

    Args:
        weights: fixed factors by role; a role that is missing or None is balanced by the number of rows.
        delay: rollouts for which one set of environments is played.
        epsilon: added to the agent's standard deviations.
        gather: returns the values of all ranks, in rank order; collective. None: there is one rank.
    """

    __name__ = "spade_advantage"

    def __init__(
        self,
        *,
        weights: Mapping[str, float | None] | None = None,
        delay: int = 1,
        epsilon: float = 1e-4,
        gather: Callable[[Earned], list[Earned]] | None = None,
    ) -> None:
        self._weights, self._delay, self._epsilon, self._gather = dict(weights or {}), delay, epsilon, gather

    def alone(self) -> SpadeReward:
        """Return the same function for the rows of one rank that no other rank has rows beside."""
        return SpadeReward(weights=self._weights, delay=self._delay, epsilon=self._epsilon)

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
        mine = earned(spade_row)
        everyone = [mine] if self._gather is None else self._gather(mine)
        counts = {role: sum(one.counts[role] for one in everyone) for role in ROLES}
        weights = self._balance(counts)
        if len(everyone) == 1:
            result = advantages(spade_row, weights, epsilon=self._epsilon)
        else:
            centres = centres_of([reward for one in everyone for reward in one.rewards])
            result = advantages(spade_row, weights, epsilon=self._epsilon, centres=centres)
            result = balanced(spade_row, result)
        for row, value in zip(spade_row, result, strict=True):
            row.advantage = value
        for name, value in advantage_metrics(spade_row, result).items():
            log_metric(name, value)
        for role in ROLES:
            if counts[role]:
                log_metric(f"weight/{role}", weights[role])
        for name, value in (spade_metrics[0] if spade_metrics else {}).items():
            log_metric(name, value)
        log_extra("role", [row.role for row in spade_row])
        log_extra("group", [row.group for row in spade_row])
        log_extra("raw_reward", [row.reward for row in spade_row])
        return result

    def _balance(self, counts: Mapping[str, int]) -> dict[str, float]:
        weights = role_weights(counts["designer"], counts["agent"], delay=self._delay)
        weights["hint"] = hint_weight(counts["hint"], counts["agent"])
        return weights | {role: value for role, value in self._weights.items() if value is not None}


def earned(rows: Sequence[Row]) -> Earned:
    """Return what the other ranks need to know of ``rows``."""
    rewarded = [row for row in rows if row.role != "pad" and row.reward is not None]
    rewards = [(row.role, row.group, row.reward or 0.0) for row in rewarded if row.role != "agent"]
    return Earned(rewards, {role: sum(row.role == role for row in rewarded) for role in ROLES})


def centres_of(rewards: Sequence[tuple[str, str, float]]) -> dict[tuple[str, str], float]:
    """Return the mean reward of each (role, group)."""
    groups: dict[tuple[str, str], list[float]] = defaultdict(list)
    for role, group, reward in rewards:
        groups[role, group].append(reward)
    return {key: fmean(values) for key, values in groups.items()}


def advantage_metrics(rows: Sequence[Row], values: Sequence[float]) -> dict[str, float]:
    """Return the spread of the advantages of each role and the share of its rows that carry none."""
    metrics: dict[str, float] = {}
    for role in ROLES:
        mine = [value for row, value in zip(rows, values) if row.role == role]
        if mine:
            metrics[f"advantage/{role}_std"] = pstdev(mine)
            metrics[f"advantage/{role}_zero_share"] = fmean(abs(value) < _NO_SIGNAL for value in mine)
    metrics["advantage/padding_share"] = fmean(row.role == "pad" for row in rows) if rows else 0.0
    return metrics
