"""The processes of one sandbox, kept apart from it so that a finaliser can end them."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Sequence

from spade_envs.sandbox.process import WorkerProcess, ZygoteProcess
from spade_envs.sandbox.spawning import SpawnedWorkers
from spade_envs.sandbox.types import IsolationLevel, Limits

ZygoteKey = tuple[bool, tuple[str, ...]]
"""Is it the twin?, and the opt-in modules that it is warmed with."""


class Seat:
    """A program's place in the pool: its worker, if it has one now, and who may use it."""

    def __init__(self) -> None:
        self.worker: WorkerProcess | None = None
        self.last_used = 0
        self.busy = False  # some thread runs the program

    def vacate(self) -> None:
        """Stop the worker."""
        worker, self.worker = self.worker, None
        if worker is not None:
            worker.kill()


class Processes:
    """Zygotes by key, as ``start`` makes them, and the seats of all programs.

    A thread takes the seats that it needs, all at once, and gives them back; the lock is held for the books only, so
    threads that run different programs do not wait for each other.
    """

    def __init__(self, start: Callable[[ZygoteKey], ZygoteProcess | SpawnedWorkers]) -> None:
        self._start = start
        self._zygotes: dict[ZygoteKey, ZygoteProcess | SpawnedWorkers] = {}
        self._seats: weakref.WeakSet[Seat] = weakref.WeakSet()
        self._ticks = itertools.count(1)
        self._renew_locks()

    def _renew_locks(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._forking = threading.Lock()

    def add(self, seat: Seat) -> None:
        """Look after ``seat``."""
        with self._changed:
            self._seats.add(seat)

    def take(self, seats: Sequence[Seat], most: int) -> None:
        """Wait until no other thread uses any of ``seats``, and there is room for their workers; then have them.

        No more than ``most`` seats have workers, or are to get them, at once: of the others the least recently used
        lose theirs.
        """
        with self._changed:
            while any(seat.busy for seat in seats) or not self._make_room(seats, most):
                self._changed.wait()
            for seat in seats:
                seat.busy = True
                seat.last_used = next(self._ticks)

    def give_back(self, seats: Sequence[Seat]) -> None:
        """Let others have ``seats``."""
        with self._changed:
            for seat in seats:
                seat.busy = False
            self._changed.notify_all()

    def _make_room(self, wanted: Sequence[Seat], most: int) -> bool:
        missing = sum(seat.worker is None for seat in wanted)
        if not missing:
            return True
        held = [seat for seat in list(self._seats) if seat.worker is not None or seat.busy]
        idle = [seat for seat in held if not seat.busy and seat not in wanted]
        excess = len(held) + missing - most
        if excess > len(idle):
            return False
        if excess > 0:
            for seat in sorted(idle, key=lambda seat: seat.last_used)[:excess]:
                seat.vacate()
        return True

    def vacate(self, seat: Seat) -> None:
        """Stop the worker of ``seat`` when no thread uses it any more."""
        with self._changed:
            while seat.busy:
                self._changed.wait()
            seat.vacate()

    def occupied(self) -> list[Seat]:
        """Return the seats that have a worker, the least recently used first."""
        return sorted((seat for seat in list(self._seats) if seat.worker is not None), key=lambda seat: seat.last_used)

    def fork(self, key: ZygoteKey, limits: Limits, minimum: IsolationLevel) -> WorkerProcess:
        """Start a worker, forked from the zygote under ``key``.

        Raises:
            SandboxError: it cannot be started.
        """
        with self._forking:
            return self.zygote(key).fork(limits, minimum)

    def zygote(self, key: ZygoteKey) -> ZygoteProcess | SpawnedWorkers:
        """Return the zygote under ``key``; start it on first use, and again if it ended by itself."""
        zygote = self._zygotes.get(key)
        if zygote is None or not zygote.alive:
            self._bury_orphans()
            if zygote is not None:
                zygote.close()
            zygote = self._zygotes[key] = self._start(key)
        return zygote

    def _bury_orphans(self) -> None:
        """Empty the seats of workers that ended with their zygote; a thread that uses one finds out by itself."""
        with self._changed:
            for seat in self.occupied():
                if seat.worker is not None and not seat.busy and seat.worker.orphaned:
                    seat.vacate()

    def stop(self, *, wait: bool = False) -> None:
        """End every process; with ``wait``, when no thread uses any."""
        if wait:
            with self._changed:
                while any(seat.busy for seat in list(self._seats)):
                    self._changed.wait()
                self._stop()
        else:
            self._stop()

    def _stop(self) -> None:
        for seat in list(self._seats):
            seat.vacate()
        while self._zygotes:
            self._zygotes.popitem()[1].close()

    def forget(self) -> None:
        """In a forked child: let go of everything without ending it. No other thread came along."""
        self._renew_locks()
        for seat in list(self._seats):
            worker, seat.worker = seat.worker, None
            seat.busy = False
            if worker is not None:
                worker.forget()
        while self._zygotes:
            self._zygotes.popitem()[1].forget()
