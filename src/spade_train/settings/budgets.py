"""Budgets of tokens and turns."""

from __future__ import annotations

from dataclasses import dataclass

from spade_train.settings.base import at_least, one_of, setting


@dataclass
class BudgetSettings:
    """Longest programs, turns, episodes and rows; 0 takes the value of the prompt set."""

    design_tokens: int = setting(0, "longest program")
    turn_tokens: int = setting(0, "longest turn of the agent")
    episode_tokens: int = setting(0, "all turns of one episode")
    max_turns: int = setting(0, "turns of one episode")
    context_tokens: int = setting(0, "prompt and completion of one row; 0: the model's own")
    generation_rows: int = setting(256, "most sequences sampled together; ignored by collective backends")
    engine: str = setting("auto", "auto: no turn waits for another one, where the backend allows it; or lock_step")
    environment_lag: int = setting(-1, "model steps that go on while environments answer; -1: 1 on a GPU, else 0")

    def check_budgets(self) -> None:
        """Raise ConfigError if a setting is wrong."""
        at_least(self, 1, ["generation_rows"])
        at_least(self, -1, ["environment_lag"])
        one_of(self, {"engine": ("auto", "lock_step")})
