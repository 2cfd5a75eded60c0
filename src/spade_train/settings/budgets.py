"""Budgets of tokens and turns."""

from __future__ import annotations

from dataclasses import dataclass

from spade_train.settings.base import at_least, setting


@dataclass
class BudgetSettings:
    """Longest programs, turns, episodes and rows; 0 takes the value of the prompt set."""

    design_tokens: int = setting(0, "longest program")
    turn_tokens: int = setting(0, "longest turn of the agent")
    episode_tokens: int = setting(0, "all turns of one episode")
    max_turns: int = setting(0, "turns of one episode")
    context_tokens: int = setting(0, "prompt and completion of one row; 0: the model's own")
    generation_rows: int = setting(256, "most sequences in one generate call; ignored by collective backends")

    def check_budgets(self) -> None:
        """Raise ConfigError if a setting is wrong."""
        at_least(self, 1, ["generation_rows"])
