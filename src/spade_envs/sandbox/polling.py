"""``select.poll``, and the part of it that is needed here for systems that lack it (Windows)."""

from __future__ import annotations

import select
import socket
from typing import Any

POLLIN, POLLOUT = getattr(select, "POLLIN", 1), getattr(select, "POLLOUT", 4)


class SelectPoll:
    """The interface of ``select.poll`` over ``select.select``, for sockets."""

    def __init__(self) -> None:
        self._events: dict[int, int] = {}

    def register(self, connection: socket.socket | int, events: int) -> None:
        """Look for ``events`` on a socket."""
        self._events[connection if isinstance(connection, int) else connection.fileno()] = events

    modify = register

    def unregister(self, connection: socket.socket | int) -> None:
        """Look no longer."""
        del self._events[connection if isinstance(connection, int) else connection.fileno()]

    def poll(self, milliseconds: float) -> list[tuple[int, int]]:
        """Return descriptors and what they are ready for, after at most so long."""
        readers = [number for number, events in self._events.items() if events & POLLIN]
        writers = [number for number, events in self._events.items() if events & POLLOUT]
        readable, writable, _ = select.select(readers, writers, [], milliseconds / 1000)
        found = dict.fromkeys(readable, POLLIN)
        for number in writable:
            found[number] = found.get(number, 0) | POLLOUT
        return list(found.items())


def poller() -> Any:
    """Return a new object with the interface of ``select.poll``."""
    return select.poll() if hasattr(select, "poll") else SelectPoll()
