"""What an episode earns: the reward that counts, and how rewards become a return."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

ReturnMode = Literal["final", "sum", "discounted"]


def clip_reward(reward: float) -> float:
    """Return ``reward`` clipped to [-1, 1]."""
    return max(-1.0, min(1.0, float(reward)))


def episode_return(
    rewards: Sequence[float], terminated: bool, mode: ReturnMode = "final", discount: float = 1.0
) -> float:
    """Return what an episode earns, in [-1, 1].

    Args:
        rewards: the reward of every step, in order.
        terminated: whether the program ended the episode itself (not a limit, not an error).
        mode: ``final``: the last reward, 0 unless terminated; ``sum``: all rewards; ``discounted``: the reward of
            step t times ``discount ** t``.
        discount: used by ``discounted`` only.
    """
    if mode == "final":
        return clip_reward(rewards[-1]) if terminated and rewards else 0.0
    factor = discount if mode == "discounted" else 1.0
    return clip_reward(sum(clip_reward(reward) * factor**index for index, reward in enumerate(rewards)))
