"""What a run does besides training: memory and checkpoints, metrics, transcripts, alarms, evaluation, the Hub."""

from spade_train.callbacks.checkpoints import START_FILE, STATE_FILE, MemoryCallback, damage, last_checkpoint, seal
from spade_train.callbacks.files import write_json
from spade_train.callbacks.metrics import METRICS_FILE, MetricsCallback, read_metrics
from spade_train.callbacks.transcripts import (
    TRANSCRIPTS_FILE,
    TRANSCRIPTS_FOLDER,
    TranscriptsCallback,
    read_parts,
)

__all__ = [
    "METRICS_FILE",
    "START_FILE",
    "STATE_FILE",
    "TRANSCRIPTS_FILE",
    "TRANSCRIPTS_FOLDER",
    "MemoryCallback",
    "MetricsCallback",
    "TranscriptsCallback",
    "damage",
    "last_checkpoint",
    "read_metrics",
    "read_parts",
    "seal",
    "write_json",
]
