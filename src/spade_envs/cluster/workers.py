"""A group of equal actors, and work for whichever of them is free."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from spade_envs.models.base import ModelError
from spade_envs.sandbox.types import SandboxError

_AHEAD = 2
"""Calls that wait at an actor: one that runs and one that follows, so that it is never idle and little is queued."""


_PAUSE, _LONGEST_PAUSE = 0.5, 16.0
"""Seconds before a lost call is repeated, doubled each time: time for a node's death to be noticed."""


class ClusterError(RuntimeError):
    """The cluster cannot be used, or lost a worker more often than it may."""


def connect(address: str | None = None) -> None:
    """Join the Ray cluster at ``address``; without one, join the cluster of this machine or start one.

    Raises:
        ClusterError: if Ray is missing or the cluster cannot be reached.
    """
    ray = _ray()
    if ray.is_initialized():
        return
    try:
        try:
            ray.init(address=address or "auto", log_to_driver=False, logging_level="ERROR")
        except ConnectionError:
            if address:
                raise
            ray.init(log_to_driver=False, logging_level="ERROR", include_dashboard=False)
    except (ConnectionError, ValueError, RuntimeError) as error:
        where = f"the Ray cluster at {address}" if address else "a Ray cluster on this machine"
        said = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ClusterError(f"{where} cannot be used ({said}); `ray start --head` starts one") from error


def cluster_cpus() -> int:
    """Return how many CPUs the cluster has now."""
    return max(1, int(_ray().cluster_resources().get("CPU", 1)))


@dataclass(slots=True)
class _Call:
    """One call that is under way."""

    method: str
    item: Any
    place: int  # index of its actor
    reference: Any
    lost: int = 0  # times that its worker was lost with it


class Workers:
    """Actors of one class; those that die are started again elsewhere, and their calls are repeated.

    A worker may be started again any number of times. A call moves to the next worker when its own is lost, at most
    ``repeats`` times: a piece of work that kills every worker it meets must not go round for ever.
    """

    def __init__(
        self,
        actor: type,
        count: int,
        arguments: Sequence[Any] = (),
        *,
        cpus: float = 1.0,
        gpus: float = 0.0,
        repeats: int = 6,
    ) -> None:
        """Start ``count`` actors made by ``actor(*arguments)``.

        Raises:
            ValueError: if ``count`` is less than 1. ClusterError: if Ray is missing.
        """
        if count < 1:
            raise ValueError(f"at least 1 worker is needed, got {count}")
        remote = _ray().remote(num_cpus=cpus, num_gpus=gpus, max_restarts=-1)(actor)
        self._actors = [remote.remote(*arguments) for _ in range(count)]
        self._repeats = repeats

    def __len__(self) -> int:
        return len(self._actors)

    def map(self, method: str, items: Iterable[Any]) -> Iterator[Any]:
        """Yield ``method(item)`` for each item, in order, taking items only as workers have room.

        Raises:
            ClusterError: if a call was lost too often. ModelError, SandboxError and whatever else the method raises.
        """
        calls: deque[_Call] = deque()  # oldest first
        load = [0] * len(self._actors)
        waiting = iter(items)
        exhausted = False
        try:
            while True:
                while not exhausted and min(load) < _AHEAD:
                    try:
                        item = next(waiting)
                    except StopIteration:
                        exhausted = True
                        break
                    place = load.index(min(load))
                    calls.append(self.submit(method, item, place))
                    load[place] += 1
                if not calls:
                    return
                # The window is bounded by what waits at the actors, so a slow first result holds back the rest.
                call = calls.popleft()
                place = call.place
                yield self.result(call)
                load[place] -= 1
        finally:
            for call in calls:
                with suppress(Exception):
                    _ray().cancel(call.reference)

    def submit(self, method: str, item: Any, turn: int) -> _Call:
        """Start one call at the worker whose turn it is, for :meth:`result`."""
        place = turn % len(self._actors)
        return _Call(method, item, place, getattr(self._actors[place], method).remote(item))

    def result(self, call: _Call) -> Any:
        """Wait for a call that was started by :meth:`submit`; raises as :meth:`map` does."""
        ray = _ray()
        while True:
            try:
                return ray.get(call.reference)
            except ray.exceptions.RayTaskError as error:
                cause = error.cause if isinstance(getattr(error, "cause", None), Exception) else error
                if isinstance(cause, (ModelError, SandboxError)):
                    raise type(cause)(str(cause)) from error
                raise cause from error
            except ray.exceptions.RayError as error:
                self._again(call, error)

    def _again(self, call: _Call, error: Exception) -> None:
        """Repeat a call whose worker was lost or cannot be reached, at the next one."""
        call.lost += 1
        if call.lost > self._repeats:
            said = (str(error).strip().splitlines() or [""])[0]
            raise ClusterError(f"a worker was lost too often ({type(error).__name__}: {said})") from error
        time.sleep(min(_LONGEST_PAUSE, _PAUSE * 2 ** (call.lost - 1)))
        again = self.submit(call.method, call.item, call.place + 1)
        call.place, call.reference = again.place, again.reference

    def close(self) -> None:
        """Stop the actors; calls under way are lost."""
        for actor in self._actors:
            with suppress(Exception):
                _ray().kill(actor)
        self._actors = []


def shards(length: int, size: int) -> list[range]:
    """Return ranges of at most ``size`` that cover ``length`` items: the same whatever the cluster looks like."""
    return [range(start, min(start + size, length)) for start in range(0, math.ceil(length / size) * size, size)]


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise ClusterError(f"a cluster needs Ray ({error}); pip install 'spade-envs[ray]'") from error
    return ray
