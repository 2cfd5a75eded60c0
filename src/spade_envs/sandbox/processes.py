"""The processes of one sandbox, kept apart from it so that a finaliser can end them."""

from __future__ import annotations

import weakref
from collections.abc import Callable

from spade_envs.sandbox.process import WorkerProcess, ZygoteProcess

ZygoteKey = tuple[bool, tuple[str, ...]]
"""Is it the twin?, and the opt-in modules that it is warmed with."""


class Seat:
    """A program's place in the pool: its worker, if it has one now, and when it was used last."""

    def __init__(self) -> None:
        self.worker: WorkerProcess | None = None
        self.last_used = 0

    def vacate(self) -> None:
        """Stop the worker."""
        worker, self.worker = self.worker, None
        if worker is not None:
            worker.kill()


class Processes:
    """Zygotes by key, as ``start`` makes them, and the seats of all programs."""

    def __init__(self, start: Callable[[ZygoteKey], ZygoteProcess] = lambda key: ZygoteProcess(key[1])) -> None:
        self._start = start
        self._zygotes: dict[ZygoteKey, ZygoteProcess] = {}
        self._seats: weakref.WeakSet[Seat] = weakref.WeakSet()

    def add(self, seat: Seat) -> None:
        """Look after ``seat``."""
        self._seats.add(seat)

    def occupied(self) -> list[Seat]:
        """Return the seats that have a worker, the least recently used first."""
        return sorted((seat for seat in list(self._seats) if seat.worker is not None), key=lambda seat: seat.last_used)

    def zygote(self, key: ZygoteKey) -> ZygoteProcess:
        """Return the zygote under ``key``; start it on first use, and again if it ended by itself."""
        zygote = self._zygotes.get(key)
        if zygote is None or not zygote.alive:
            self._bury_orphans()
            if zygote is not None:
                zygote.close()
            zygote = self._zygotes[key] = self._start(key)
        return zygote

    def _bury_orphans(self) -> None:
        """Empty the seats of workers that ended with their zygote."""
        for seat in self.occupied():
            if seat.worker is not None and seat.worker.orphaned:
                seat.vacate()

    def stop(self) -> None:
        """End every process."""
        for seat in list(self._seats):
            seat.vacate()
        while self._zygotes:
            self._zygotes.popitem()[1].close()

    def forget(self) -> None:
        """In a forked child: let go of everything without ending it."""
        for seat in list(self._seats):
            worker, seat.worker = seat.worker, None
            if worker is not None:
                worker.forget()
        while self._zygotes:
            self._zygotes.popitem()[1].forget()
