"""How many requests an endpoint gets at once: additive increase, multiplicative decrease.

The rule of TCP (Chiu and Jain 1989, Computer Networks and ISDN Systems 17, 1–14): each answer adds 1/limit, so about
one request more after every round of answers; a refusal for load halves the limit, once for all requests that were
under way by then. While a server asks for a pause, nobody sends.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Throttle:
    """The bound and the pause, kept between calls; :class:`Slots` is one call's view of it."""

    def __init__(self, most: int) -> None:
        """Start at ``most`` requests at once, which is never exceeded.

        Raises:
            ValueError: if ``most`` is less than 1.
        """
        if most < 1:
            raise ValueError(f"an endpoint needs at least 1 request at once, got {most}")
        self.most = most
        self.limit = float(most)
        self.resume_at = 0.0  # time.monotonic() before which nothing is sent
        self._lowered_at = 0.0

    @property
    def room(self) -> int:
        """Requests that may be under way now."""
        return max(1, int(self.limit))

    def answered(self) -> None:
        """Take note of an answer."""
        self.limit = min(float(self.most), self.limit + 1.0 / self.limit)

    def refused(self, sent_at: float, pause: float | None) -> None:
        """Take note of a refusal for load of a request sent at ``sent_at``; ``pause`` is what the server asked for."""
        now = time.monotonic()
        if sent_at >= self._lowered_at:  # not one of those that the last reduction came too late for
            self.limit = max(1.0, self.limit / 2)
            self._lowered_at = now
        if pause:
            self.resume_at = max(self.resume_at, now + pause)


class Slots:
    """Places for requests within one event loop, as many as the throttle leaves room for."""

    def __init__(self, throttle: Throttle) -> None:
        self._throttle = throttle
        self._taken = 0
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Wait for room and for the end of a pause; the place is free again at the end of the block."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._taken < self._throttle.room)
            self._taken += 1
        try:
            while (pause := self._throttle.resume_at - time.monotonic()) > 0:
                await asyncio.sleep(pause)
            yield
        finally:
            async with self._changed:
                self._taken -= 1
                self._changed.notify_all()
