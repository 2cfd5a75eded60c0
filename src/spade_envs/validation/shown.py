"""Evidence for findings: JSON-safe, short enough to read."""

from __future__ import annotations

from typing import Any

from spade_envs.sandbox.types import ProgramError
from spade_envs.validation.rollout import Rollout

_LAST = 8  # actions shown


def shorten(text: str, limit: int = 120) -> str:
    """Cut ``text`` and say how long it was; lone surrogates are escaped."""
    safe = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return safe if len(safe) <= limit else f"{safe[:limit]}… ({len(safe)} characters)"


def quoted(text: str) -> str:
    """A short literal of ``text`` for a sentence."""
    return repr(shorten(text, 60))


def play_evidence(rollout: Rollout | None) -> dict[str, Any]:
    """Policy, seed, last actions and last observation of an episode."""
    if rollout is None:
        return {"policy": "malformed"}
    return {
        "policy": rollout.policy,
        "seed": rollout.seed,
        "actions": [shorten(action) for action in rollout.actions][-_LAST:],
        "observation": shorten(rollout.observation, 300),
    }


def error_evidence(error: ProgramError) -> dict[str, Any]:
    """Kind and message of a program's error."""
    return {"error": error.kind, "message": shorten(str(error), 300)}
