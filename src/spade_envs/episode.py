"""One episode as data: its configuration, its messages and steps, why it stopped, what it earned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from spade_envs.models.base import Message
from spade_envs.returns import ReturnMode, episode_return

if TYPE_CHECKING:
    from spade_envs.sandbox import Program

HINT_TEMPLATE = "\n\nHint: {hint}"
"""Appended to the first observation of a hinted episode."""


class StopReason(StrEnum):
    """Why an episode stopped."""

    TERMINATED = "terminated"
    """The program reached an end of its own: won, lost, or answered."""
    TRUNCATED = "truncated"
    """The program cut the episode off, usually at its own turn limit."""
    TURN_LIMIT = "turn_limit"
    """``PlayConfig.max_turns`` replies were given."""
    TOKEN_BUDGET = "token_budget"
    """The replies used up ``PlayConfig.episode_tokens``."""
    CONTEXT_LIMIT = "context_limit"
    """The conversation no longer fits into the model's context."""
    PROGRAM_ERROR = "program_error"
    """The program raised, timed out, died or broke the protocol; the return is 0."""
    MODEL_ERROR = "model_error"
    """The model gave no reply."""


@dataclass(frozen=True, slots=True)
class PlayConfig:
    """Budgets, prompts and the way an episode is paid.

    Raises:
        ValueError: if a budget is not positive, or the return mode or the discount is out of range.
    """

    max_turns: int = 25
    turn_tokens: int = 1024  # longest reply
    episode_tokens: int = 8192  # all replies of one episode
    context_tokens: int = 0  # prompt and reply of one call; 0: as long as the model takes it
    return_mode: ReturnMode = "final"
    discount: float = 1.0
    system_prompt: str = ""  # empty: no system message
    hint_template: str = HINT_TEMPLATE
    tools: Literal["text", "native"] = "text"  # listed in the system prompt, or offered through the model's interface

    def __post_init__(self) -> None:
        for name in ("max_turns", "turn_tokens", "episode_tokens"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.return_mode not in ("final", "sum", "discounted"):
            raise ValueError(f"return_mode must be 'final', 'sum' or 'discounted', got {self.return_mode!r}")
        if not 0.0 <= self.discount <= 1.0:
            raise ValueError(f"discount must lie in [0, 1], got {self.discount}")
        if self.tools not in ("text", "native"):
            raise ValueError(f"tools must be 'text' or 'native', got {self.tools!r}")
        if "{hint}" not in self.hint_template:
            raise ValueError(f"hint_template must contain '{{hint}}', got {self.hint_template!r}")


@dataclass(frozen=True, slots=True)
class PlayTask:
    """One episode to play. ``key`` is the record's id or what else the caller finds it by."""

    program: Program
    seed: int
    hint: str | None = None
    key: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)  # of the program's constructor
    max_turns: int = 0  # fewer or more than the configuration's; 0: the configuration's


class PlayStep(NamedTuple):
    """One turn: the reply and what the program made of it. The reward is clipped to [-1, 1]."""

    action: str
    observation: str
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


@dataclass(slots=True, eq=False, weakref_slot=True)
class Episode:
    """One conversation with one instance of a program; made by :func:`start_episodes`."""

    task: PlayTask
    config: PlayConfig
    session: int
    observation: str = ""  # the first one, without the hint
    info: dict[str, Any] = field(default_factory=dict)  # what reset gave besides
    messages: list[Message] = field(default_factory=list)  # ends with a user message while the episode runs
    steps: list[PlayStep] = field(default_factory=list)
    tools: list[dict[str, Any]] = field(default_factory=list)
    tokens: int = 0  # of all replies
    context: int = 0  # tokens of the latest prompt and reply, where the player knows them
    stop: StopReason | None = None
    error: str = ""
    lost: bool = False  # the worker died with the session, there is nothing to close

    @property
    def turns(self) -> int:
        """Replies that the program has answered."""
        return len(self.steps)

    @property
    def rewards(self) -> list[float]:
        """Rewards of the steps, each in [-1, 1]."""
        return [step.reward for step in self.steps]

    @property
    def return_(self) -> float:
        """The episode's return by the configured mode, in [-1, 1]; 0 after a program error."""
        if self.stop is StopReason.PROGRAM_ERROR:
            return 0.0
        terminated = self.stop is StopReason.TERMINATED
        return episode_return(self.rewards, terminated, self.config.return_mode, self.config.discount)

    @property
    def remaining_tokens(self) -> int:
        """Tokens that the next reply may have."""
        return max(0, min(self.config.turn_tokens, self.config.episode_tokens - self.tokens))

    def to_dict(self) -> dict[str, Any]:
        """Return the transcript, JSON-safe."""
        return {
            "key": self.task.key,
            "seed": self.task.seed,
            "hint": self.task.hint,
            "messages": [dict(message) for message in self.messages],
            "steps": [step._asdict() for step in self.steps],
            "tools": self.tools,
            "turns": self.turns,
            "tokens": self.tokens,
            "rewards": self.rewards,
            "return": self.return_,
            "stop": None if self.stop is None else str(self.stop),
            "error": self.error,
        }
