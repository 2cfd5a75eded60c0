"""What both roles are paid."""

from __future__ import annotations

from dataclasses import dataclass

from spade_train.rewards import DESIGNER_REWARDS
from spade_train.settings.base import one_of, setting


@dataclass
class PaySettings:
    """Rewards of the designer, the return of the agent, weights of the roles."""

    designer_reward: str = setting("blend", "one of blend, regret, plateau, solve_variance")
    return_mode: str = setting("final", "episode return: final, sum or discounted")
    discount: float = setting(1.0, "for return_mode discounted")
    invalid_reward: float = setting(0.0, "designer reward of a refused program")
    duplicate_reward: float = setting(0.0, "designer reward of a program that the memory has already")
    timeout_reward: float = setting(-0.5, "designer reward of a program that runs too long")
    designer_weight: float | None = setting(None, "factor of the designer's advantages; default: balance, at most 50")
    agent_weight: float | None = setting(None, "factor of the agent's advantages; default: 1 or balance")

    def check_pay(self) -> None:
        """Raise ConfigError if a setting is wrong."""
        one_of(self, {"designer_reward": DESIGNER_REWARDS, "return_mode": ("final", "sum", "discounted")})
