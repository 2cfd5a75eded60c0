"""SIGTERM and the first SIGINT save a checkpoint at the end of the running cycle and end the run."""

from __future__ import annotations

import logging
import signal
import threading
from types import FrameType
from typing import Any

import torch
from transformers import TrainerCallback

logger = logging.getLogger(__name__)

EXIT_RESUME = 75
"""Exit status after a signal, when the checkpoint is saved (EX_TEMPFAIL of sysexits.h: try again)."""

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class StopSignals(TrainerCallback):  # type: ignore[misc]
    """Listens from the start of the training until :meth:`restore`; ``reason`` says why the run was stopped.

    A second signal does what it does without this: SIGTERM ends the process, SIGINT raises ``KeyboardInterrupt``.
    Works on all ranks if one of them gets a signal, as a cluster does before it takes machines away.
    """

    def __init__(self) -> None:
        self._caught = 0
        self._before: dict[int, Any] = {}
        self.reason = ""

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Start to listen; only a main thread can."""
        self._caught, self.reason = 0, ""
        if threading.current_thread() is threading.main_thread() and not self._before:
            self._before = {number: signal.signal(number, self._catch) for number in _SIGNALS}

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Save and stop, if a signal came on any rank; collective."""
        if number := _largest(self._caught, args):
            self.reason = signal.Signals(number).name
            control.should_save = control.should_training_stop = True

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Stop listening."""
        self.restore()

    def restore(self) -> None:
        """Give the signals back to whom they had before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def _catch(self, number: int, frame: FrameType | None) -> None:
        self._caught = number
        self.restore()
        logger.warning("%s: saving at the end of this cycle, then stopping", signal.Signals(number).name)


def _largest(value: int, args: Any) -> int:
    if args.world_size == 1:
        return value
    from accelerate import PartialState
    from accelerate.utils import gather

    return int(gather(torch.tensor([value], device=PartialState().device)).max())
