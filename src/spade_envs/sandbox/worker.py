"""The process that runs one program: jail, then a loop of requests, each a list of operations.

The soft limit is a timer on CPU time, which does not fire because the machine is busy with something else. It
fires again and again, and each time raises once more on the next line that runs, so that a program which swallows
every exception is stopped too. What no signal can interrupt (one long call into C) meets the caller's hard limit,
which kills this process.
"""

from __future__ import annotations

import copy
import gc
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any, NoReturn

from spade_envs.sandbox import loader, results, wire
from spade_envs.sandbox.jail import at_least, isolation_level, lock_down
from spade_envs.sandbox.policy import FILENAME
from spade_envs.sandbox.types import IsolationLevel, Limits, PolicyViolation, ProtocolViolation

_REPEAT_SECONDS = 0.05  # of the soft limit, once it has fired
_FLUSH_SECONDS, _FLUSH_BYTES = 0.001, 1 << 16
_OUT_OF_MEMORY = wire.encode_reply(wire.RAISED, ["MemoryError", "out of memory", 0])
_MAX_DESCRIPTION = 4_000


class SoftLimit(BaseException):
    """Raised inside the program by the timer."""


class _LostSession(Exception):
    """There is no instance under this number."""


@dataclass(slots=True)
class _Instance:
    environment: Any
    generator: random.Random
    timed_out: bool = False


class Worker:
    """State of one worker process; :meth:`serve` never returns."""

    def __init__(self, descriptor: int, limits: Limits) -> None:
        self._socket = descriptor
        self._limits = limits
        self._program: type | None = None
        self._instances: dict[int, _Instance] = {}
        self._strikes = 0
        self._armed = False  # the program is running
        self._fired = False  # the timer interrupted it

    def serve(self) -> NoReturn:
        """Answer requests until the other end closes."""
        signal.signal(signal.SIGPROF, self._on_timer)
        while True:
            (size,) = wire.HEADER.unpack(self._read(wire.HEADER.size))
            operations = wire.decode_request(self._read(size))
            pending: list[bytes] = []
            waiting, flushed = 0, time.monotonic()
            for name, session, argument in operations:
                reply = self._answer(name, session, argument)
                pending.append(reply)
                waiting += len(reply)
                if waiting > _FLUSH_BYTES or time.monotonic() - flushed > _FLUSH_SECONDS:
                    self._write(b"".join(pending))
                    pending.clear()
                    waiting, flushed = 0, time.monotonic()
            if pending:
                self._write(b"".join(pending))

    def _read(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            chunk = os.read(self._socket, size - len(parts))
            if not chunk:
                os._exit(0)
            parts += chunk
        return bytes(parts)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._socket, view) :]

    def _on_timer(self, _signal: int, frame: FrameType | None) -> None:
        # Interrupted between two steps of _under_limit itself, the program is not running: nothing to stop.
        if not self._armed or frame is None or frame.f_code is Worker._under_limit.__code__:
            return
        running: FrameType | None = frame
        while running is not None and running.f_code is not Worker._under_limit.__code__:
            running.f_trace = self._insist
            running = running.f_back
        sys.settrace(self._insist)
        self._fired = True
        raise SoftLimit

    def _insist(self, _frame: FrameType, event: str, _argument: Any) -> Any:
        """Trace function that raises on the next line: the one inside the `except:` that caught the first."""
        if event == "exception" or not self._armed:  # the first is just being raised
            return self._insist
        raise SoftLimit

    def _under_limit(self, seconds: float, call: Callable[[], Any]) -> tuple[Any, BaseException | None]:
        """Return ``(call(), None)``, or ``(None, error)``; the error is a SoftLimit after ``seconds`` of CPU.

        The timer goes on running afterwards, harmlessly: a system call saved is a tenth of a small step.
        """
        value, failure = None, None
        self._fired = False
        try:
            signal.setitimer(signal.ITIMER_PROF, seconds, _REPEAT_SECONDS)
            self._armed = True
            value = call()
            self._armed = False
        except BaseException as error:
            self._armed = False
            failure = error
        if self._fired:  # even if the program swallowed it: it was interrupted somewhere
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            sys.settrace(None)
            return None, failure if isinstance(failure, SoftLimit) else SoftLimit()
        return value, failure

    def _answer(self, name: str, session: int, argument: Any) -> bytes:
        instance = self._instances.get(session)
        if self._strikes >= self._limits.quarantine_after:
            return wire.encode_reply(wire.SKIPPED, "not run: the program timed out too often")
        if instance is not None and instance.timed_out and name not in ("reset", "make", "close"):
            return wire.encode_reply(wire.BROKEN, "an earlier operation of this session timed out; reset it first")
        loading = name == "load"
        seconds = self._limits.load_seconds if loading else self._limits.soft_seconds
        value, error = self._under_limit(seconds, lambda: self._perform(name, session, argument))
        try:
            if error is None:
                return wire.encode_reply(wire.OK, value)
            return self._report(error, instance, seconds)
        except MemoryError:
            return _OUT_OF_MEMORY

    def _report(self, error: BaseException, instance: _Instance | None, seconds: float) -> bytes:
        if isinstance(error, SoftLimit):
            self._strikes += 1
            if instance is not None:
                instance.timed_out = True
            return wire.encode_reply(wire.TIMEOUT, f"used more than {seconds:g} s of CPU time")
        if type(error) in (results.BadResult, ProtocolViolation):
            return wire.encode_reply(wire.PROTOCOL, results.shorten(str(error), wire.MAX_MESSAGE))
        if type(error) is _LostSession:
            return wire.encode_reply(wire.LOST, str(error))
        if type(error) is PolicyViolation:
            reasons = [
                [reason.line, reason.column, results.shorten(reason.message, wire.MAX_MESSAGE)]
                for reason in error.reasons[: wire.MAX_REASONS]
            ]
            return wire.encode_reply(wire.POLICY, reasons)
        # str() of the program's own exception is the program's code again.
        message, failure = self._under_limit(seconds, lambda: results.exception_text(error, wire.MAX_MESSAGE))
        if isinstance(failure, SoftLimit):
            return self._report(failure, instance, seconds)
        if failure is not None:
            message = "(the exception's text could not be read)"
        return wire.encode_reply(wire.RAISED, [results.type_name(error), message, _line_in_program(error)])

    def _perform(self, name: str, session: int, argument: Any) -> Any:
        limit = self._limits.max_observation_chars
        if name == "load":
            return self._load(*argument)
        if name == "close":
            self._instances.pop(session, None)
            return None
        if name == "make":
            self._instances.pop(session, None)
            return self._make(session, argument or {})
        instance = self._instances.get(session)
        if instance is None:
            raise _LostSession(f"session {session} was lost, or never made; make it first")
        environment = instance.environment
        loader.use_generator(instance.generator)
        if name == "step":
            return results.step_result(environment.step(argument), limit)
        if name == "reset":
            loader.begin_episode(instance.generator, argument)
            value = results.reset_result(environment.reset(seed=argument), limit)
            instance.timed_out = False
            return value
        if name == "hint":
            return results.hint_result(_call(environment, "hint"), limit)
        if name == "solution":
            return results.solution_result(_call(environment, "solution"), limit)
        if name == "tools":
            return results.tools_result(_call(environment, "get_tools"), limit)
        if name == "copy":
            generator = loader.copy_generator(instance.generator)
            self._instances[argument] = _Instance(copy.deepcopy(environment), generator)
            return None
        raise ValueError(f"unknown operation {name!r}")

    def _make(self, session: int, arguments: dict[str, Any]) -> None:
        if self._program is None:
            raise _LostSession("the program is not loaded")
        generator = random.Random(0)
        loader.use_generator(generator)
        self._instances[session] = _Instance(self._program(**arguments), generator)

    def _load(self, source: str, allow: list[str]) -> list[Any]:
        loader.use_generator(random.Random(0))
        program = loader.load_program(source, frozenset(allow))
        self._program = program
        description, limit = program.__doc__, self._limits.max_observation_chars
        return [
            results.shorten(program.__name__, wire.MAX_NAME),
            callable(getattr(program, "hint", None)),
            callable(getattr(program, "solution", None)),
            callable(getattr(program, "get_tools", None)),
            results.shorten(description if type(description) is str else "", min(limit, _MAX_DESCRIPTION)),
        ]


def _call(environment: Any, method: str) -> Any:
    function = getattr(environment, method, None)
    return None if function is None else function()


def _line_in_program(error: BaseException) -> int:
    """Return the line of the innermost frame that belongs to the generated source, 0 if there is none."""
    line = 0
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == FILENAME:
            line = traceback.tb_lineno or line
        traceback = traceback.tb_next
    if not line and isinstance(error, SyntaxError) and error.filename == FILENAME:
        line = error.lineno or 0
    return line


def run(descriptor: int, parent: int, limits: Limits, minimum: IsolationLevel) -> NoReturn:
    """Become a worker: lock down, report the layers, serve. Refuse to serve below the ``minimum`` level."""
    sys.stdin = sys.stdout = sys.stderr = None
    layers = lock_down(keep=descriptor, parent=parent, memory_mb=limits.memory_mb, cpu_seconds=limits.cpu_seconds)
    worker = Worker(descriptor, limits)
    hello = {name: results.shorten(state, wire.MAX_MESSAGE) for name, state in layers.items()}
    worker._write(wire.encode_reply(wire.OK, hello))
    if not at_least(isolation_level(layers), minimum):
        os._exit(0)
    random.seed(0)
    gc.freeze()
    worker.serve()
