"""What the roles are paid."""

from __future__ import annotations

from dataclasses import dataclass

from spade_train.rewards import DESIGNER_REWARDS
from spade_train.settings.base import ConfigError, at_least, one_of, setting


@dataclass
class PaySettings:
    """Rewards of the designer, the return of the agent, weights of the roles, correction of late rows."""

    designer_reward: str = setting("blend", f"one of {', '.join(DESIGNER_REWARDS)}")
    plateau_low: float = setting(0.4, "lowest win rate that earns the whole plateau")
    plateau_high: float = setting(0.6, "highest win rate that earns the whole plateau")
    plateau_ramp: float = setting(0.25, "width over which the plateau falls to 0 on either side")
    blend_plateau: float = setting(0.6, "share of the plateau in the blend")
    blend_regret: float = setting(0.4, "share of the regret in the blend")
    regret_scale: float = setting(0.15, "regret that earns its whole share of the blend")
    fast_rate: float = setting(0.98, "weight of the newest window in a skill's fast moving average of win rates")
    slow_rate: float = setting(0.85, "the same of its slow one, which learning_potential compares with")
    return_mode: str = setting("final", "episode return: final, sum or discounted")
    discount: float = setting(1.0, "for return_mode discounted")
    invalid_reward: float = setting(0.0, "reward of a refused program or hint")
    duplicate_reward: float = setting(0.0, "designer reward of a program that the memory has already")
    timeout_reward: float = setting(-0.5, "designer reward of a program that runs too long")
    quarantined_reward: float = setting(-0.5, "designer reward of a program that the sandbox stopped for good")
    designer_weight: float | None = setting(None, "factor of the designer's advantages; default: balance, at most 50")
    hint_weight: float | None = setting(None, "factor of the hint writer's advantages; default: balance, at most 50")
    agent_weight: float | None = setting(None, "factor of the agent's advantages; default: 1 or balance")
    off_policy_cap: float = setting(
        3.0,
        "rows trained late: most that a token's probability ratio counts; with vLLM: vllm_importance_sampling_clip_max",
    )

    def check_pay(self) -> None:
        """Raise ConfigError if a setting is wrong."""
        one_of(self, {"designer_reward": DESIGNER_REWARDS, "return_mode": ("final", "sum", "discounted")})
        at_least(self, 0, ["blend_plateau", "blend_regret"])
        for name in ("plateau_ramp", "regret_scale", "off_policy_cap"):
            if getattr(self, name) <= 0.0:
                raise ConfigError(f"{name} must be greater than 0, got {getattr(self, name)}")
        if not 0.0 <= self.plateau_low <= self.plateau_high <= 1.0:
            raise ConfigError(
                f"plateau_low and plateau_high must satisfy 0 <= low <= high <= 1, got {self.plateau_low} and "
                f"{self.plateau_high}"
            )
        if not 0.0 < self.slow_rate <= self.fast_rate <= 1.0:
            raise ConfigError(
                f"slow_rate and fast_rate are weights of the newest value and must satisfy 0 < slow <= fast <= 1, got "
                f"{self.slow_rate} and {self.fast_rate}"
            )
