"""What a run does besides training: memory and checkpoints, metrics, transcripts, alarms, evaluation, the Hub."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spade_train.callbacks.checkpoints import START_FILE, STATE_FILE, MemoryCallback, damage, last_checkpoint, seal
from spade_train.callbacks.files import write_json
from spade_train.callbacks.metrics import METRICS_FILE, MetricsCallback, read_metrics
from spade_train.callbacks.signals import EXIT_RESUME, StopSignals
from spade_train.callbacks.transcripts import (
    TRANSCRIPTS_FILE,
    TRANSCRIPTS_FOLDER,
    TranscriptsCallback,
    read_parts,
)
from spade_train.callbacks.watch import (
    ALARMS_FILE,
    AlarmsCallback,
    EarlyStopCallback,
    collapsed,
    read_alarms,
)
from spade_train.callbacks.windows import WindowCallback

if TYPE_CHECKING:
    from transformers import TrainerCallback

    from spade_train.selfplay import SelfPlay

__all__ = [
    "ALARMS_FILE",
    "EXIT_RESUME",
    "METRICS_FILE",
    "START_FILE",
    "STATE_FILE",
    "TRANSCRIPTS_FILE",
    "TRANSCRIPTS_FOLDER",
    "AlarmsCallback",
    "EarlyStopCallback",
    "MemoryCallback",
    "MetricsCallback",
    "StopSignals",
    "TranscriptsCallback",
    "collapsed",
    "damage",
    "last_checkpoint",
    "read_alarms",
    "read_metrics",
    "read_parts",
    "seal",
    "session_callbacks",
    "write_json",
]


def session_callbacks(session: SelfPlay) -> list[TrainerCallback]:
    """Return what a run of ``session`` needs; the memory comes first, for the others read what it has committed."""
    config = session.config
    window = WindowCallback(session.rollout.window)  # before the checkpoint is sealed
    found: list[TrainerCallback] = [window, MemoryCallback(session), MetricsCallback()]
    if config.transcripts != "off":
        lines, parts = config.transcripts in ("jsonl", "both"), config.transcripts in ("parquet", "both")
        found.append(TranscriptsCallback(session, lines=lines, parts=parts, ids=config.transcript_ids))
    if config.heldout_every or config.evaluate_every:
        from spade_train.callbacks.evaluation import EvaluationCallback

        found.append(EvaluationCallback(session))
    found += [AlarmsCallback(), StopSignals()]
    if config.stops:
        thresholds = {name: float(getattr(config, f"stop_{name}")) for name in config.stops}
        found.append(EarlyStopCallback(thresholds, config.stop_patience))
    if config.hub_push:
        from spade_train.callbacks.hub import HubCallback

        found.append(HubCallback(session))
    return found
