"""Talk to many workers at once: send every request, collect every answer, kill who takes too long.

Each answer restarts its worker's deadline, so a batch may take as long as its operations are allowed to take one by
one, and a single stuck operation no longer than one. At the deadline the worker's CPU time decides: one that did
not get its share of a busy machine may go on, within reason.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from spade_envs.sandbox.polling import POLLIN, POLLOUT, poller
from spade_envs.sandbox.process import WorkerProcess
from spade_envs.sandbox.types import (
    Limits,
    Outcome,
    ProgramDied,
    ProgramError,
    ProgramTimeout,
    ProtocolViolation,
    SandboxError,
)
from spade_envs.sandbox.wire import HEADER, TIMEOUT, WireError, decode_hello, decode_replies, reply_cap

_CHUNK = 1 << 18
_PATIENCE = 8  # a starved worker is killed after this many times its limit in wall-clock time
_SHORTEST_WAIT = 0.02


@dataclass(slots=True)
class Exchange:
    """One worker's share: a request frame, the names of its operations, and what came back."""

    worker: WorkerProcess
    request: bytes
    names: Sequence[str]
    outcomes: list[Outcome] = field(default_factory=list)
    layers: dict[str, str] | None = None  # set when the worker's isolation report arrived in this exchange
    failure: ProgramError | None = None  # why outcomes are missing; the worker is dead then
    fault: SandboxError | None = None  # the worker could not start at all, which is not the program's doing
    timeouts: int = 0  # operations that ran into the soft limit
    sent: int = 0
    began: float = 0.0  # when the operation that is awaited began
    cpu_began: float | None = None
    budget: float = 0.0  # seconds it may take
    deadline: float = 0.0

    @property
    def done(self) -> bool:
        """Whether nothing more is awaited."""
        return self.failure is not None or (self.worker.greeted and len(self.outcomes) == len(self.names))


def converse(exchanges: Iterable[Exchange], limits: Limits) -> list[Exchange]:
    """Run all exchanges to their end and return them. Never raises for what a worker does; a failed worker has been
    killed. Each request is sent before the next exchange is taken: workers begin while others' requests are written.
    """
    poll = poller()
    waiting: dict[int, Exchange] = {}
    taken = []
    for exchange in exchanges:
        taken.append(exchange)
        _restart_deadline(exchange, limits)
        _send(exchange)
        if not exchange.done:
            waiting[exchange.worker.socket.fileno()] = exchange
            poll.register(exchange.worker.socket, _events(exchange))
    while waiting:
        patience = min(exchange.deadline for exchange in waiting.values()) - time.monotonic()
        for descriptor, events in poll.poll(max(0.0, patience) * 1000 + 1):
            exchange = waiting[descriptor]
            if events & POLLOUT:
                _send(exchange)
                poll.modify(descriptor, _events(exchange))
            if events & ~POLLOUT:
                _receive(exchange, limits)
        now = time.monotonic()
        for descriptor, exchange in list(waiting.items()):
            if not exchange.done and now >= exchange.deadline:
                _judge(exchange, limits)
            if exchange.done:
                poll.unregister(descriptor)
                del waiting[descriptor]
                _finish(exchange)
    return taken


def _judge(exchange: Exchange, limits: Limits) -> None:
    """The deadline has come: fail the exchange, or grant what other processes took of its time.

    This process may have had to wait for a processor as well, since it looked for answers: it looks again, after it
    has asked whether the worker sleeps. A worker that slept before, and has said nothing, is not about to.
    """
    asleep = exchange.worker.is_waiting()
    heard = _receive(exchange, limits)
    now = time.monotonic()
    if exchange.done or now < exchange.deadline:
        return
    budget, cpu = exchange.budget, exchange.worker.cpu_seconds()
    if cpu is not None and exchange.cpu_began is not None and now < exchange.began + _PATIENCE * budget:
        left = budget - (cpu - exchange.cpu_began)
        if left > 0 and (heard or not asleep):
            exchange.deadline = now + max(left, _SHORTEST_WAIT)
            return
    exchange.failure = ProgramTimeout(f"did not stop within {budget:g} s of an operation's beginning; killed")


def _events(exchange: Exchange) -> int:
    return POLLIN if exchange.sent == len(exchange.request) else POLLIN | POLLOUT


def _restart_deadline(exchange: Exchange, limits: Limits) -> None:
    position = len(exchange.outcomes)
    loading = not exchange.worker.greeted or (position < len(exchange.names) and exchange.names[position] == "load")
    exchange.budget = (limits.load_seconds if loading else limits.soft_seconds) + limits.hard_seconds
    if not exchange.worker.greeted:
        exchange.budget += exchange.worker.start_seconds
    exchange.began = time.monotonic()
    exchange.cpu_began = exchange.worker.cpu_seconds()
    exchange.deadline = exchange.began + exchange.budget


def _send(exchange: Exchange) -> None:
    view = memoryview(exchange.request)
    try:
        while exchange.sent < len(view):
            exchange.sent += exchange.worker.socket.send(view[exchange.sent :])
    except BlockingIOError:
        pass
    except OSError:
        exchange.sent = len(view)  # it is dying: the end of the stream tells


def _receive(exchange: Exchange, limits: Limits) -> bool:
    """Take in what has come; return whether there was anything, be it the end."""
    try:
        chunk = exchange.worker.socket.recv(_CHUNK)
    except BlockingIOError:
        return False
    except OSError:
        chunk = b""
    if not chunk:
        exchange.failure = ProgramDied("")  # in words by _finish, when the process is gone
        return True
    buffer = exchange.worker.buffer
    buffer += chunk
    try:
        if _consume(exchange, buffer, limits) and not exchange.done:
            _restart_deadline(exchange, limits)
    except SandboxError as error:
        exchange.failure, exchange.fault = ProgramDied(str(error)), error
    except WireError as error:
        exchange.failure = ProtocolViolation(f"the worker wrote something else than an answer: {error}")
    return True


def _consume(exchange: Exchange, buffer: bytearray, limits: Limits) -> bool:
    """Decode the complete frames in ``buffer``; return whether there was one."""
    start, cap, size = 0, reply_cap(limits), HEADER.size
    while len(buffer) - start >= size:
        (length,) = HEADER.unpack_from(buffer, start)
        if length > cap:
            raise WireError(f"a frame of {length} bytes, at most {cap} are allowed")
        end = start + size + length
        if len(buffer) < end:
            break
        body = bytes(memoryview(buffer)[start + size : end])
        start = end
        if not exchange.worker.greeted:
            exchange.layers = decode_hello(body)
            exchange.worker.greeted = True
            continue
        if len(exchange.outcomes) == len(exchange.names):
            raise WireError("more answers than questions")
        status, outcomes = decode_replies(body, exchange.names, len(exchange.outcomes), limits)
        exchange.outcomes += outcomes
        exchange.timeouts += status == TIMEOUT
    del buffer[:start]
    if buffer and exchange.done:
        raise WireError("more bytes than answers")
    return start > 0


def _finish(exchange: Exchange) -> None:
    failure = exchange.failure
    if failure is None:
        return
    if type(failure) is ProgramDied and exchange.fault is None:
        exchange.failure = ProgramDied(exchange.worker.cause_of_death())
    exchange.worker.kill()
