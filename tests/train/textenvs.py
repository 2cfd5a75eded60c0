"""Registered Gymnasium text environments for the tests, as a user would write them."""

from __future__ import annotations

from typing import Any

import gymnasium
from gymnasium.spaces import Text

LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Countdown(gymnasium.Env[str, str]):
    """Say the letter that comes next, three times."""

    def __init__(self, start: int = 0) -> None:
        self.observation_space = Text(200)
        self.action_space = Text(1, charset=LETTERS)
        self._start, self._at, self._turn = start, 0, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self._at, self._turn = self._start + int(self.np_random.integers(20)), 0
        return f"After {LETTERS[self._at]}?", {"at": self._at, "object": object()}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if action == "z":
            raise KeyError("no z here")
        self._turn += 1
        right = LETTERS[self._at + 1] == action
        return f"After {LETTERS[self._at]}?", float(right), right or self._turn == 3, False, {}


class Grid(gymnasium.Env[Any, Any]):
    """Observations that are no text."""

    observation_space = gymnasium.spaces.Discrete(3)
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return 0, {}


gymnasium.register("textenvs/Countdown-v0", entry_point=Countdown, max_episode_steps=5)
gymnasium.register("textenvs/Grid-v0", entry_point=Grid)
