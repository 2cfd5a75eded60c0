"""Wall-clock time by stage."""

from __future__ import annotations

import time


class Laps:
    """A stopwatch: each call books the time since the last one under a stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._clock = time.perf_counter()

    def __call__(self, stage: str) -> None:
        """End the stage that has been running."""
        now = time.perf_counter()
        self.seconds[stage], self._clock = now - self._clock, now
