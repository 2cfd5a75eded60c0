"""The soft limit: CPU time that one operation of a program may take, kept by a timer that ticks all the time.

A timer set for each operation would cost a system call, a tenth of a small step. This one ticks on CPU time, which
does not pass because the machine is busy with something else; a tick that finds the same operation running as an
earlier one knows how long it has been running, to within a tick. Once the limit is reached it fires again and
again, and each time raises once more on the next line that runs, so that a program which swallows every exception is
stopped too. What no signal can interrupt (one long call into C) meets the caller's hard limit.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

_REPEAT_SECONDS = 0.05  # of the soft limit, once it has fired
_TICKS = 10  # of the clock in one limit
_TIMERS = hasattr(signal, "setitimer")
_SHORTEST_TICK, _LONGEST_TICK = 0.004, 0.1


class SoftLimit(BaseException):
    """Raised inside the program by the timer."""


class Watch:
    """Interrupts an operation that takes too long.

    Whoever runs the program sets ``running`` to a number that it has not had before, and to 0 afterwards, in a
    function made known by :meth:`drive`; after each operation, ``fired`` says whether it was interrupted.
    """

    __slots__ = ("_drivers", "_seen", "_since", "_tick", "fired", "running", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds  # that the running operation may take
        self.running = 0
        self.fired = False
        self._tick = min(max(seconds / _TICKS, _SHORTEST_TICK), _LONGEST_TICK)
        self._seen, self._since = 0, 0.0
        self._drivers: set[CodeType] = {Watch.call.__code__}

    def drive(self, function: Callable[..., Any]) -> None:
        """Let the frames of ``function`` be those from which programs are called, which are never interrupted."""
        self._drivers.add(function.__code__)

    def start(self) -> None:
        """Start ticking, where there are timers; elsewhere all that takes too long meets the caller's hard limit."""
        if _TIMERS:
            signal.signal(signal.SIGPROF, self._on_tick)
            signal.setitimer(signal.ITIMER_PROF, self._tick, self._tick)

    def recover(self) -> None:
        """After an operation that was interrupted: go back to plain ticking."""
        sys.settrace(None)
        signal.setitimer(signal.ITIMER_PROF, self._tick, self._tick)
        self.fired = False

    def call(self, number: int, seconds: float, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what ``function`` returns, run as operation ``number``.

        Raises:
            SoftLimit: it was interrupted, whether the program let that through or not.
            BaseException: what the function raises.
        """
        usual, self.seconds = self.seconds, seconds
        try:
            self.running = number
            value = function(*arguments)
            self.running = 0
        except BaseException:
            self.running = 0
            if not self.fired:
                raise
            value = None
        finally:
            self.seconds = usual
        if self.fired:
            self.recover()
            raise SoftLimit
        return value

    def _on_tick(self, _signal: int, frame: FrameType | None) -> None:
        if not self.running or frame is None or frame.f_code in self._drivers:
            return  # between two operations the program is not running: nothing to stop
        if not self.fired:
            now = time.process_time()
            if self.running != self._seen:
                self._seen, self._since = self.running, now
                return
            if now - self._since < self.seconds:
                return
            self.fired = True
            signal.setitimer(signal.ITIMER_PROF, _REPEAT_SECONDS, _REPEAT_SECONDS)
        running: FrameType | None = frame
        while running is not None and running.f_code not in self._drivers:
            running.f_trace = self._insist
            running = running.f_back
        sys.settrace(self._insist)
        raise SoftLimit

    def _insist(self, _frame: FrameType, event: str, _argument: Any) -> Any:
        """Trace function that raises on the next line: the one inside the `except:` that caught the first."""
        if event == "exception" or not self.running:  # the first is just being raised
            return self._insist
        raise SoftLimit
