"""What the single and the vector environment have in common: from a program's results to Gymnasium's values."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np

from spade_envs.batching import describe
from spade_envs.episode import HINT_TEMPLATE
from spade_envs.record import EnvironmentRecord
from spade_envs.returns import clip_reward
from spade_envs.sandbox.types import (
    IsolationLevel,
    ProgramError,
    ResetResult,
    StepResult,
)
from spade_envs.spaces import UnicodeText

if TYPE_CHECKING:
    from spade_envs.sandbox import Sandbox

MAX_TEXT = 65_536
"""Longest observation and action, in characters; longer observations are cut."""

SEED_BOUND = 2**31
"""Seeds that an environment draws for its program lie below this."""


def choose_sandbox(sandbox: Sandbox | None, minimum_isolation: IsolationLevel | None) -> Sandbox:
    """Return ``sandbox``, or this process's shared one: the default, or the one for ``minimum_isolation``."""
    from spade_envs.sandbox import default_sandbox

    if sandbox is not None:
        return sandbox
    return default_sandbox() if minimum_isolation is None else _sandbox_at(minimum_isolation)


@cache
def _sandbox_at(minimum_isolation: IsolationLevel) -> Sandbox:
    from spade_envs.sandbox import Sandbox

    return Sandbox(minimum_isolation=minimum_isolation)


def turn_limit(record: EnvironmentRecord, max_turns: int | None) -> int:
    """Return after how many turns an episode is truncated, 0 for never.

    Raises:
        ValueError: if ``max_turns`` is negative.
    """
    if max_turns is not None and max_turns < 0:
        raise ValueError(f"max_turns must not be negative, got {max_turns}")
    return record.max_turns if max_turns is None else max_turns


def draw_seed(generator: np.random.Generator, seed: int | None) -> int:
    """Return the program's seed: the one given (folded to 63 bits, what the sandbox's wire takes) or a drawn one."""
    return int(generator.integers(SEED_BOUND)) if seed is None else int(seed) % 2**63


def require_hint(hint: str | None, record: EnvironmentRecord) -> str:
    """Return ``hint``, or raise ValueError if there is none."""
    if not hint:
        raise ValueError(f"{record.env_id} has no hint: reset it without options['hint']")
    return hint


def first_observation(
    result: ResetResult, seed: int, hint: str | None, space: UnicodeText
) -> tuple[str, dict[str, Any]]:
    """Return observation and info of a reset; a hint survives the clipping of a long observation."""
    info = {**result.info, "seed": seed}
    if hint is None:
        return space.clip(result.observation), info
    appendix = space.clip(HINT_TEMPLATE.replace("{hint}", hint))
    return result.observation[: space.max_length - len(appendix)] + appendix, {**info, "hint": hint}


def step_values(
    result: StepResult | ProgramError, space: UnicodeText, last_turn: bool
) -> tuple[str, float, bool, bool, dict[str, Any]]:
    """Return what ``step`` returns for a program's result or failure; ``last_turn`` truncates what goes on."""
    if isinstance(result, ProgramError):
        return space.clip(""), 0.0, False, True, {"error": describe(result)}
    observation, reward, terminated, truncated, info = result
    return space.clip(observation), clip_reward(reward), terminated, truncated or (last_turn and not terminated), info


def check_action(action: Any) -> str:
    """Return ``action`` as a plain string.

    Raises:
        gymnasium.error.InvalidAction: if it is not a string.
    """
    if not isinstance(action, str):
        raise gymnasium.error.InvalidAction(f"expected an action of type str, got {type(action).__name__}")
    return str(action)


def check_render_mode(render_mode: str | None) -> None:
    """Raise ValueError for a render mode that there is not."""
    if render_mode not in (None, "ansi"):
        raise ValueError(f"expected render_mode None or 'ansi', got {render_mode!r}")


def render_frame(
    action: str, observation: str, reward: float, terminated: bool, truncated: bool, info: dict[str, Any]
) -> str:
    """Return one turn as text."""
    end = "terminated" if terminated else "truncated" if truncated else ""
    state = f"[reward {reward:g}{', ' + end if end else ''}]"
    return "\n".join(part for part in (f"> {action}", observation, str(info.get("error", "")), state) if part)
