"""Progress of a training run: a bar on a terminal, plain lines elsewhere; with what is wrong, if anything is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from transformers import TrainerCallback

from spade_envs.cli.console import Advance, err, progress, shown
from spade_train.alarms import Alarm, alarms
from spade_train.callbacks.metrics import metrics_line, read_metrics

WORDS = (
    ("design/valid", "valid"),
    ("environment/plain_return", "plain"),
    ("environment/hinted_return", "hinted"),
    ("environment/regret", "regret"),
)
"""Metrics shown beside the bar, with their labels. Where no environment is new, those that are played again count."""


class DisplayCallback(TrainerCallback):  # type: ignore[misc]  # transformers is not typed
    """Moves a progress display at every step that is logged."""

    def __init__(self, advance: Advance) -> None:
        self._advance = advance
        self._lines: list[dict[str, Any]] = []

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Go on from the lines that the run has left."""
        self._lines = [line for line in read_metrics(args.output_dir) if line["step"] <= state.global_step]

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        """Show the step, a few of its metrics and the alarms that hold."""
        if not logs or "reward" not in logs:
            return
        self._lines.append(metrics_line(state.global_step, logs))
        words = [f"{label} {float(logs[name]):.2f}" for name, label in _shown_metrics(logs)]
        held = alarms(self._lines)
        if held:
            words.append("alarm: " + ", ".join(alarm.name for alarm in held))
        self._advance(state.global_step, " · ".join(words))


def _shown_metrics(logs: Mapping[str, Any]) -> list[tuple[str, str]]:
    new = any(name.startswith("environment/") for name in logs)
    names = [(name if new else name.replace("environment/", "replay/"), label) for name, label in WORDS]
    return [(name, label) for name, label in names if name in logs]


@contextmanager
def training_display(steps: int) -> Iterator[list[TrainerCallback]]:
    """Give the callbacks that show a run of ``steps`` steps while the context is open."""
    with progress("train", steps) as advance:
        yield [DisplayCallback(advance)]


def show_alarms(told: Sequence[Alarm]) -> None:
    """Print the alarms of a run, each name once with its latest cause."""
    for alarm in {alarm.name: alarm for alarm in told}.values():
        colour = "bold red" if alarm.severity == "critical" else "yellow"
        err.print(f"[{colour}]alarm {alarm.name}[/] (step {alarm.step}): {shown(alarm.cause)}. {shown(alarm.advice)}")
