"""Alarms in the log and on disk, and the early stop."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from spade_train.alarms import Alarm, alarms
from spade_train.callbacks.files import append_lines, keep_steps, whole_lines
from spade_train.callbacks.metrics import metrics_line, read_metrics

logger = logging.getLogger(__name__)

ALARMS_FILE = "alarms.jsonl"
REPEAT_AFTER = 50
"""Cycles after which an alarm that still holds is told again."""

STOP_METRICS = {
    "validity": ("design/valid", "programs that pass validation"),
    "diversity": ("diversity/ideas", "different programs of a cycle, in effect (Vendi score)"),
    "regret": ("environment/regret", "mean regret"),
}
"""What an early stop looks at, and in words."""


class AlarmsCallback(TrainerCallback):  # type: ignore[misc]
    """Tells what goes wrong, once when it begins and again every :data:`REPEAT_AFTER` cycles; on rank 0."""

    def __init__(self) -> None:
        self._lines: list[dict[str, Any]] = []
        self._told: dict[str, int] = {}  # alarms that hold, and the step at which they were told last

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Go on from the lines that the run has left."""
        if args.process_index == 0:
            folder = Path(args.output_dir)
            keep_steps(folder / ALARMS_FILE, state.global_step)
            self._lines = [line for line in read_metrics(folder) if line["step"] <= state.global_step]
            told = {alarm.name: alarm.step for alarm in read_alarms(folder)}
            self._told = {alarm.name: told.get(alarm.name, alarm.step) for alarm in alarms(self._lines)}

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **_: Any) -> None:
        """Look at the step's metrics."""
        if args.process_index != 0 or not logs or "reward" not in logs:
            return
        self._lines.append(metrics_line(state.global_step, logs))
        new = self._new(alarms(self._lines))
        for alarm in new:
            logger.warning("%s", alarm)
        append_lines(Path(args.output_dir) / ALARMS_FILE, [alarm.to_dict() for alarm in new])

    def _new(self, held: Sequence[Alarm]) -> list[Alarm]:
        new = [a for a in held if a.name not in self._told or a.step - self._told[a.name] >= REPEAT_AFTER]
        self._told = {a.name: a.step if a in new else self._told[a.name] for a in held}
        return new


def read_alarms(folder: str | Path) -> list[Alarm]:
    """Return what was told of a run, oldest first."""
    return [Alarm(**line) for line in whole_lines(Path(folder) / ALARMS_FILE)]


def collapsed(lines: Sequence[Mapping[str, Any]], thresholds: Mapping[str, float], patience: int) -> str:
    """Say what has collapsed: stood below its threshold in the latest ``patience`` lines that have it; else "".

    Args:
        lines: of ``metrics.jsonl``, oldest first.
        thresholds: for the names in :data:`STOP_METRICS`.
        patience: lines in a row.
    """
    for name, threshold in thresholds.items():
        metric, words = STOP_METRICS[name]
        values = [float(line[metric]) for line in lines if metric in line][-patience:]
        if len(values) == patience and max(values) < threshold:
            return f"{words}: below {threshold:g} for {patience} cycles, now {values[-1]:.3g}"
    return ""


def since_last_stop(
    lines: Sequence[dict[str, Any]], thresholds: Mapping[str, float], patience: int
) -> list[dict[str, Any]]:
    """Return the lines after the latest one with which :func:`collapsed` stopped the run, or would have."""
    low, start = dict.fromkeys(thresholds, 0), 0  # lines in a row that were below
    for place, line in enumerate(lines):
        for name, threshold in thresholds.items():
            metric = STOP_METRICS[name][0]
            if metric in line:
                low[name] = low[name] + 1 if float(line[metric]) < threshold else 0
        if max(low.values(), default=0) >= patience:
            low, start = dict.fromkeys(thresholds, 0), place + 1
    return list(lines[start:])


class EarlyStopCallback(TrainerCallback):  # type: ignore[misc]
    """Saves and stops when what the run lives on has collapsed. ``reason`` says why."""

    def __init__(self, thresholds: Mapping[str, float], patience: int) -> None:
        self._thresholds, self._patience = dict(thresholds), patience
        self._lines: list[dict[str, Any]] = []
        self.reason = ""

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Go on from the lines that the run has left; where it was stopped for them before, patience begins anew."""
        if args.process_index == 0:
            lines = [line for line in read_metrics(args.output_dir) if line["step"] <= state.global_step]
            self._lines = since_last_stop(lines, self._thresholds, self._patience)

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **_: Any) -> None:
        """Decide on rank 0, for all; collective."""
        from accelerate.utils import broadcast_object_list

        if not logs or "reward" not in logs:
            return
        if args.process_index == 0:
            self._lines.append(metrics_line(state.global_step, logs))
            self.reason = collapsed(self._lines, self._thresholds, self._patience)
        shared = [self.reason]
        if args.world_size > 1:
            broadcast_object_list(shared)
        self.reason = shared[0]
        if self.reason:
            control.should_save = control.should_training_stop = True
            if args.process_index == 0:
                logger.warning("stopping early: %s", self.reason)
