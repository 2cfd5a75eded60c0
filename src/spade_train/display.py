"""Progress of a training run: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from transformers import TrainerCallback

from spade_envs.cli.console import Advance, progress

WORDS = (
    ("design/valid", "valid"),
    ("environment/plain_return", "plain"),
    ("environment/hinted_return", "hinted"),
    ("environment/regret", "regret"),
)
"""Metrics shown beside the bar, with their labels."""


class DisplayCallback(TrainerCallback):  # type: ignore[misc]  # transformers is not typed
    """Moves a progress display at every step that is logged."""

    def __init__(self, advance: Advance) -> None:
        self._advance = advance

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        """Show the step and a few of its metrics."""
        found = [f"{label} {float(logs[name]):.2f}" for name, label in WORDS if logs and name in logs]
        if found:
            self._advance(state.global_step, " · ".join(found))


@contextmanager
def training_display(steps: int) -> Iterator[list[TrainerCallback]]:
    """Give the callbacks that show a run of ``steps`` steps while the context is open."""
    with progress("train", steps) as advance:
        yield [DisplayCallback(advance)]
