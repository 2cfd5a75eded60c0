"""One line of metrics for each step."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from spade_train.callbacks.files import append_lines, keep_steps, whole_lines

METRICS_FILE = "metrics.jsonl"


class MetricsCallback(TrainerCallback):  # type: ignore[misc]
    """Appends one line for each step to ``metrics.jsonl``."""

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Drop the lines of steps that will be run again."""
        if args.process_index == 0:
            keep_steps(Path(args.output_dir) / METRICS_FILE, state.global_step)

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **_: Any) -> None:
        """Write the step's metrics; the trainer's summary at the end is not one."""
        if args.process_index == 0 and logs and "reward" in logs:
            append_lines(Path(args.output_dir) / METRICS_FILE, [metrics_line(state.global_step, logs)])


def metrics_line(step: int, logs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the finite numbers of ``logs`` as a line; ``not_finite`` counts the others, if there are any."""
    line: dict[str, Any] = {"step": step}
    lost = 0
    for name, value in logs.items():
        number = value if isinstance(value, int) else _number(value)
        if number is not None and math.isfinite(number):
            line[name] = number
        else:
            lost += number is not None
    if lost:
        line["not_finite"] = lost
    if "step_time" in line and "seconds/rollout" in line:
        line["seconds/update"] = round(max(0.0, line["step_time"] - line["seconds/rollout"]), 4)
    return line


def read_metrics(folder: str | Path) -> list[dict[str, Any]]:
    """Return the lines of a run's ``metrics.jsonl``, oldest first."""
    return list(whole_lines(Path(folder) / METRICS_FILE))


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
