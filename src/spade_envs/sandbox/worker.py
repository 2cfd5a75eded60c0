"""The process that runs one program: jail, then a loop of requests, each a list of operations.

Each instance has a module of its own, so that nothing that one does can change another: the compiled program is
executed again for every ``make``, unless its source shows that no state can be outside the instances. A program that is
loaded as ``shared`` has one module for all instances, as plain Python would; the validator looks for hidden global
state in it.
"""

from __future__ import annotations

import contextlib
import copy
import decimal
import gc
import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from spade_envs import contract
from spade_envs.sandbox import addresses, generator, guards, inspecting, loader, results, wire
from spade_envs.sandbox.generator import begin_episode, copy_generator, use_generator
from spade_envs.sandbox.jail import at_least, isolation_level, lock_down
from spade_envs.sandbox.outbox import Outbox
from spade_envs.sandbox.policy import FILENAME
from spade_envs.sandbox.softlimit import SoftLimit, Watch
from spade_envs.sandbox.types import IsolationLevel, Limits, Nudge, PolicyViolation, ProtocolViolation

_FLUSH_SECONDS = 0.004  # what is ready is sent: an answer restarts the caller's hard limit, and survives a crash
_FULL_BYTES = 1 << 16
_CHUNK = 1 << 16
_MAX_DESCRIPTION = 4_000


class _LostSession(Exception):
    """There is no instance under this number."""


class _Instance:
    """One instance of the program, in a module of its own. The environment is None after a time-out."""

    __slots__ = ("arguments", "classes", "context", "environment", "generator", "module", "nudge")

    def __init__(
        self,
        environment: Any,
        generator: random.Random,
        module: loader.Module,
        arguments: dict[str, Any],
        context: decimal.Context | None,
    ) -> None:
        self.environment, self.generator, self.module, self.arguments = environment, generator, module, arguments
        self.context = context
        self.nudge: Nudge | None = None
        self.classes = module.classes
        module.users += 1

    def end(self) -> None:
        """Let go of everything; finalisers are the program's code."""
        self.environment = None
        self.module.release()


class Worker:
    """State of one worker process; :meth:`serve` never returns."""

    def __init__(self, descriptor: int, limits: Limits) -> None:
        contract.new_rng = generator.Random
        self._socket = descriptor
        self._ahead = b""  # read, but not looked at yet
        self._limits = limits
        self._source = ""
        self._program: loader.Compiled | None = None
        self._module: loader.Module | None = None  # the next instance's, or, if they share one, every instance's
        self._shared = False
        self._instances: dict[int, _Instance] = {}
        self._strikes = 0
        self._number = 0  # of the operation
        self._watch = Watch(limits.soft_seconds)
        self._watch.drive(Worker._run_batch)
        self._outbox = Outbox(self._write, wire.reply_cap(limits))

    def serve(self) -> NoReturn:
        """Answer requests until the other end closes."""
        self._watch.start()
        while True:
            self._run_batch(wire.decode_request(self._frame()))
            self._outbox.flush()

    def say(self, status: int, payload: Any) -> None:
        """Send one answer at once."""
        self._outbox.put(status, payload)
        self._outbox.flush()

    def _frame(self) -> bytes:
        """Return the next request, mostly with one system call."""
        data, header = self._ahead, wire.HEADER.size
        while len(data) < header or len(data) < header + wire.HEADER.unpack_from(data)[0]:
            missing = header + wire.HEADER.unpack_from(data)[0] - len(data) if len(data) >= header else 0
            data += self._read(missing) if missing > _CHUNK else self._read_some()
        end = header + wire.HEADER.unpack_from(data)[0]
        self._ahead = data[end:]
        return data[header:end]

    def _read_some(self) -> bytes:
        chunk = os.read(self._socket, _CHUNK)
        if not chunk:
            os._exit(0)
        return chunk

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

    def _run_batch(self, operations: Sequence[tuple[str, int, Any]]) -> None:
        """Answer ``operations``. Steps and resets of healthy instances, nearly all that there is, are done here."""
        watch, outbox, current = self._watch, self._outbox, generator.current
        limit, patience = self._limits.max_observation_chars, self._limits.quarantine_after
        find, clock, step_row, reset_row = (
            self._instances.get,
            time.monotonic,
            results.step_result,
            results.reset_result,
        )
        number, until = self._number, clock() + _FLUSH_SECONDS
        for name, session, argument in operations:
            instance = find(session)
            stepping = name == "step"
            if (
                not (stepping or name == "reset")
                or instance is None
                or instance.environment is None
                or self._strikes >= patience
            ):
                instance = None
                self._number = number
                outbox.put(*self._answer(name, session, argument))
                number = self._number
            else:
                current.rng, current.nudge = instance.generator, instance.nudge
                guards.own_classes = instance.classes
                if instance.context is not None:
                    decimal.setcontext(instance.context)
                number += 1
                try:
                    watch.running = number
                    if stepping:
                        row = step_row(instance.environment.step(argument), limit)
                    else:
                        begin_episode(instance.generator, argument)
                        row = reset_row(instance.environment.reset(seed=argument), limit)
                    watch.running = 0
                    failure = None
                except BaseException as error:
                    watch.running = 0
                    failure = error
                if watch.fired:
                    watch.recover()
                    failure = SoftLimit()
                if failure is None:
                    outbox.put_row(name, row)
                else:
                    self._number = number
                    outbox.put(*self._report(failure, instance, watch.seconds))
                    failure, number = None, self._number  # an error holds the program's frames
            if outbox.waiting > _FULL_BYTES or clock() > until:
                outbox.flush()
                until = clock() + _FLUSH_SECONDS
        self._number = number

    def _answer(self, name: str, session: int, argument: Any) -> tuple[int, Any]:
        """Carry out any operation, with care."""
        instance = self._instances.get(session)
        if self._strikes >= self._limits.quarantine_after and name != "close":
            return wire.SKIPPED, "not run: the program timed out too often"
        if instance is not None and instance.environment is None and name not in ("reset", "make", "close"):
            return wire.BROKEN, "an earlier operation of this session timed out; reset it first"
        if name in ("make", "close"):
            instance = None  # it is dropped below, finalisers and all, under the limit
        seconds = self._limits.load_seconds if name == "load" else self._limits.soft_seconds
        try:
            return wire.OK, self._under_limit(seconds, self._perform, name, session, argument)
        except BaseException as error:
            return self._report(error, instance, seconds)

    def _under_limit(self, seconds: float, function: Callable[..., Any], *arguments: Any) -> Any:
        self._number += 1
        return self._watch.call(self._number, seconds, function, *arguments)

    def _report(self, error: BaseException, instance: _Instance | None, seconds: float) -> tuple[int, Any]:
        """Return the answer that says what went wrong."""
        if isinstance(error, SoftLimit):
            self._strikes += 1
            if instance is not None:
                self._drop(instance)
            return wire.TIMEOUT, f"used more than {seconds:g} s of CPU time"
        if type(error) in (results.BadResult, ProtocolViolation):
            return wire.PROTOCOL, results.shorten(str(error), wire.MAX_MESSAGE)
        if type(error) is _LostSession:
            return wire.LOST, str(error)
        if type(error) is PolicyViolation:
            return wire.POLICY, [
                [reason.line, reason.column, results.shorten(reason.message, wire.MAX_MESSAGE)]
                for reason in error.reasons[: wire.MAX_REASONS]
            ]
        # str() of the program's own exception is the program's code again.
        try:
            message = self._under_limit(seconds, results.exception_text, error, wire.MAX_MESSAGE)
        except SoftLimit as failure:
            return self._report(failure, instance, seconds)
        except BaseException:
            message = "(the exception's text could not be read)"
        return wire.RAISED, [results.type_name(error), message, _line_in_program(error)]

    def _drop(self, instance: _Instance) -> None:
        """Let go of an environment that was interrupted somewhere; its finalisers are the program's code."""
        with contextlib.suppress(BaseException):
            self._under_limit(self._limits.soft_seconds, setattr, instance, "environment", None)

    def _perform(self, name: str, session: int, argument: Any) -> Any:
        limit = self._limits.max_observation_chars
        if name == "load":
            return self._load(*argument)
        if name in ("make", "close"):
            if session in self._instances:
                self._instances.pop(session).end()
            if name == "make":
                self._instances[session] = self._make(argument or {})
            return None
        instance = self._instances.get(session)
        if instance is None:
            raise _LostSession(f"session {session} was lost, or never made; make it first")
        if instance.environment is None:  # it timed out: start anew
            self._instances.pop(session).end()
            instance = self._instances[session] = self._make(instance.arguments)
        if name == "nudge":
            instance.nudge = None if argument is None else Nudge(*argument)
            return None
        environment = instance.environment
        use_generator(instance.generator)
        generator.current.nudge = instance.nudge
        guards.own_classes = instance.classes
        if instance.context is not None:
            decimal.setcontext(instance.context)
        if name == "step":
            return results.step_result(environment.step(argument), limit)
        if name == "reset":
            begin_episode(instance.generator, argument)
            return results.reset_result(environment.reset(seed=argument), limit)
        if name == "hint":
            return results.hint_result(_call(environment, "hint"), limit)
        if name == "solution":
            return results.solution_result(_call(environment, "solution"), limit)
        if name == "tools":
            return results.tools_result(_call(environment, "get_tools"), limit)
        if name == "inspect":
            return inspecting.inspect_tools(environment, self._source, argument)
        if name == "sibling":
            sibling = self._make_in(instance.module, instance.arguments)
            if argument in self._instances:
                self._instances.pop(argument).end()
            self._instances[argument] = sibling
            return None
        if name == "copy":
            copied = copy_generator(instance.generator)
            # A copy shares its original's module, as everywhere in Python.
            made = copy.deepcopy(environment)
            if argument in self._instances:
                self._instances.pop(argument).end()
            context = instance.context.copy() if instance.context is not None else None
            twin = self._instances[argument] = _Instance(made, copied, instance.module, instance.arguments, context)
            twin.nudge = instance.nudge
            return None
        raise ValueError(f"unknown operation {name!r}")

    def _make(self, arguments: dict[str, Any]) -> _Instance:
        if self._program is None:
            raise _LostSession("the program is not loaded")
        module = self._module
        if module is None:
            use_generator(random.Random(0))
            module = self._program.execute()
        if not self._shared:
            self._module = None
        return self._make_in(module, arguments)

    def _make_in(self, module: loader.Module, arguments: dict[str, Any]) -> _Instance:
        guards.own_classes = module.classes
        own = random.Random(0)
        use_generator(own)
        if module.context is not None:
            decimal.setcontext(module.context)
        return _Instance(module.environment(**arguments), own, module, arguments, module.context)

    def _load(self, source: str, allow: list[str], shared: bool = False) -> list[Any]:
        self._program, self._source = None, source
        compiled = loader.compile_source(source, frozenset(allow))
        self._shared = shared or compiled.stateless
        use_generator(random.Random(0))
        self._module = compiled.execute()
        self._module.users += self._shared  # then it goes with the program
        self._program, program = compiled, self._module.environment
        description, limit = program.__doc__, self._limits.max_observation_chars
        return [
            results.shorten(program.__name__, wire.MAX_NAME),
            callable(getattr(program, "hint", None)),
            callable(getattr(program, "solution", None)),
            callable(getattr(program, "get_tools", None)),
            results.shorten(description if type(description) is str else "", min(limit, _MAX_DESCRIPTION)),
            addresses.sees_addresses(compiled.code),
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
    worker = Worker(descriptor, limits)
    try:
        layers = lock_down(keep=descriptor, parent=parent, memory_mb=limits.memory_mb, cpu_seconds=limits.cpu_seconds)
        worker.say(wire.OK, {name: results.shorten(state, wire.MAX_MESSAGE) for name, state in layers.items()})
        if not at_least(isolation_level(layers), minimum):
            os._exit(0)
        random.seed(0)
        gc.freeze()
        worker.serve()
    except BaseException as error:  # ours, not the program's
        text = f"{type(error).__name__}: {error}"
        worker.say(wire.DYING, results.shorten(text, wire.MAX_MESSAGE))
        raise
