"""The sandbox: a bounded pool of jailed workers, one program to a worker."""

from __future__ import annotations

import operator
import os
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType

from spade_envs.sandbox.allowlist import OPTIONAL
from spade_envs.sandbox.exchange import Exchange, converse
from spade_envs.sandbox.jail import at_least, isolation_level
from spade_envs.sandbox.processes import Processes
from spade_envs.sandbox.session import Program
from spade_envs.sandbox.starting import starter
from spade_envs.sandbox.types import (
    IsolationLevel,
    IsolationReport,
    Limits,
    Operation,
    Outcome,
    PolicyViolation,
    ProgramDied,
    ProgramError,
    ProgramQuarantined,
    ProtocolViolation,
    Reason,
    SandboxError,
)
from spade_envs.sandbox.wire import encode_request, reply_cap

_DEFAULT_LIMITS = Limits()
_NAME, _SESSION = operator.itemgetter(0), operator.itemgetter(1)


@dataclass(slots=True)
class _Job:
    """One program's batch on its way through a worker."""

    program: Program
    operations: Sequence[Operation]
    opening: bool = False  # a failure is raised instead of handed out
    outcomes: dict[int, Outcome] = field(default_factory=dict)  # by position in operations
    positions: list[int] = field(default_factory=list)  # of the operations that are sent
    prefix: list[Operation] = field(default_factory=list)  # what brings a new worker up to date
    answers: list[Outcome] | None = None  # of all operations; otherwise they are in outcomes

    def results(self) -> list[Outcome]:
        """Return the outcomes in order."""
        if self.answers is not None:
            return self.answers
        return [self.outcomes[position] for position in range(len(self.operations))]


class Sandbox:
    """Runs generated programs in jailed worker processes.

    Safe to use from several threads, which wait for each other only where they use the same program, and after a
    fork: a forked child leaves its parent's processes alone, starts its own on first use and brings its sessions back
    by playing them again.

    Args:
        limits: bounds on every program.
        max_workers: live worker processes at most; the least recently used program's worker is stopped first.
        minimum_isolation: what the system must offer; below it every use raises :class:`SandboxError`.
    """

    def __init__(
        self, limits: Limits = _DEFAULT_LIMITS, *, max_workers: int = 64, minimum_isolation: IsolationLevel = "full"
    ) -> None:
        if max_workers < 1:
            raise ValueError(f"max_workers must be at least 1, got {max_workers}")
        if reply_cap(limits) > limits.max_frame_bytes:
            raise ValueError(
                f"max_observation_chars={limits.max_observation_chars} needs max_frame_bytes of at least "
                f"{reply_cap(limits)}, got {limits.max_frame_bytes}"
            )
        self.limits = limits
        self.max_workers = max_workers
        self.minimum_isolation: IsolationLevel = minimum_isolation
        self._report: IsolationReport | None = None
        self._processes = Processes(starter(minimum_isolation, limits))
        self._finaliser = weakref.finalize(self, self._processes.stop)
        _instances.add(self)

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def isolation(self) -> IsolationReport:
        """What a real worker of this sandbox reported about its layers.

        Raises:
            SandboxError: no worker can be started, or isolation is below ``minimum_isolation``.
        """
        if self._report is None:
            worker = self._processes.fork((False, ()), self.limits, self.minimum_isolation)
            exchange = Exchange(worker, b"", ())
            try:
                converse([exchange], self.limits)
                self._check_layers(exchange)
            finally:
                worker.kill()
            if self._report is None:
                raise SandboxError(f"a worker could not be started: {exchange.failure}")
        return self._report

    def open(self, source: str, *, allow: Sequence[str] = (), twin: bool = False, shared: bool = False) -> Program:
        """Load ``source`` in a fresh worker of its own.

        Args:
            source: the program.
            allow: opt-in modules, e.g. ``("numpy",)``.
            twin: use a second, independently started zygote, where every object has another address.
            shared: let all instances share one module, its globals and its classes, as plain Python would. Without it
                each instance has its own, and nothing that one does reaches another.

        Raises:
            ProgramError: the source was refused, or failed to load.
            SandboxError: the machinery failed.
            ValueError: ``allow`` names something that cannot be opted in.
        """
        unknown = sorted(set(allow) - set(OPTIONAL))
        if unknown:
            raise ValueError(f"no opt-in module is called {unknown[0]!r}; there are: {', '.join(sorted(OPTIONAL))}")
        if len(source) > self.limits.max_source_chars:
            message = f"the source has {len(source)} characters, at most {self.limits.max_source_chars} are allowed"
            raise PolicyViolation((Reason(1, 0, message),))
        program = Program(self, source, allow, twin, shared)
        self._processes.add(program.seat)
        try:
            self._run_wave([_Job(program, (), opening=True)])
        except ProgramError:
            program.close()
            raise
        return program

    def run_many(self, batches: Sequence[tuple[Program, Sequence[Operation]]]) -> list[list[Outcome]]:
        """Carry out one batch for each program, all workers at once; outcomes in the order given.

        Raises:
            SandboxError: the machinery failed.
        """
        jobs = [_Job(program, operations) for program, operations in batches]
        for wave in self._waves(jobs) if len(jobs) > 1 else [jobs]:
            self._run_wave(wave)
        return [job.results() for job in jobs]

    def close(self) -> None:
        """Stop every process. The sandbox may be used again; sessions are then brought back."""
        self._processes.stop(wait=True)

    def vacate(self, program: Program) -> None:
        """Stop the worker of ``program`` once no thread uses it; the next operation starts another one."""
        self._processes.vacate(program.seat)

    def _waves(self, jobs: Sequence[_Job]) -> list[list[_Job]]:
        """Group jobs so that no group has a program twice, or more programs than there may be workers.

        Programs that have a worker come first: otherwise each group would stop the workers that the next one needs.
        """
        waves: list[list[_Job]] = []
        members: set[int] = set()
        for job in sorted(jobs, key=lambda job: job.program.seat.worker is None):
            if not waves or id(job.program) in members or len(members) == self.max_workers:
                waves.append([])
                members = set()
            waves[-1].append(job)
            members.add(id(job.program))
        return waves

    def _run_wave(self, jobs: list[_Job]) -> None:
        """Run jobs of different programs; a zygote that dies under them is replaced once."""
        seats = [job.program.seat for job in jobs]
        self._processes.take(seats, self.max_workers)
        try:
            for job in jobs:
                if job.program.closed:
                    raise SandboxError(f"{job.program!r} was closed; open its source again")
            self._run_taken([job for job in jobs if not self._refuse_quarantined(job)])
        finally:
            self._processes.give_back(seats)

    def _run_taken(self, jobs: list[_Job]) -> None:
        try:
            orphaned = self._attempt(jobs)
            if orphaned:
                orphaned = self._attempt(orphaned)
            if orphaned:
                raise SandboxError("the sandbox's fork server died twice in a row; is the machine out of memory?")
        except BaseException:
            # Some workers may be ahead of their journals, or not be loaded: the next use starts from the journals.
            for job in jobs:
                job.program.seat.vacate()
            raise

    def _attempt(self, jobs: Sequence[_Job]) -> list[_Job]:
        """Run jobs once; return those whose zygote died under them, as if they had not been run."""
        exchanges = converse(self._prepare(jobs), self.limits)
        orphaned = []
        for job, exchange in zip(jobs, exchanges, strict=True):
            self._check_layers(exchange)
            if exchange.failure is not None and exchange.worker.orphaned:
                job.program.seat.vacate()
                orphaned.append(job)
            else:
                self._settle(job, exchange)
                if job.program.quarantined:  # nothing of it will run again
                    job.program.journal.clear()
                    job.program.seat.vacate()
        return orphaned

    def _refuse_quarantined(self, job: _Job) -> bool:
        program = job.program
        if not program.quarantined:
            return False
        error = ProgramQuarantined(f"not run any more: it timed out or died {program.strikes} times")
        job.outcomes = {position: Outcome(error=error) for position in range(len(job.operations))}
        return True

    def _prepare(self, jobs: Sequence[_Job]) -> Iterator[Exchange]:
        """Give every job's program a worker, and turn the job into an exchange with it, one after the other."""
        for job in jobs:
            program = job.program
            job.prefix = []
            if program.seat.worker is None:
                load = Operation("load", 0, [program.source, list(program.allow), program.shared])
                job.prefix = [load, *program.journal.replay()]
                program.seat.worker = self._processes.fork(program.zygote_key, self.limits, self.minimum_isolation)
            sent = list(job.operations)
            names = list(map(_NAME, sent))
            job.positions = list(range(len(sent)))
            if not program.journal.knows(names, list(map(_SESSION, sent))):
                job.outcomes = program.journal.unknown(sent)
            if job.outcomes:
                job.positions = [place for place in job.positions if place not in job.outcomes]
                sent = [job.operations[place] for place in job.positions]
            request = self._encode(job, job.prefix + sent if job.prefix else sent)
            if job.prefix or len(names) != len(job.positions):
                names = [operation.name for operation in job.prefix]
                names += [job.operations[place].name for place in job.positions]
            yield Exchange(program.seat.worker, request, names)

    def _encode(self, job: _Job, operations: list[Operation]) -> bytes:
        """Return the request, in several frames if one would be too large."""
        request = encode_request(operations)
        if len(request) <= self.limits.max_frame_bytes:
            return request
        frames = []
        for operation in job.prefix:
            frames.append(encode_request([operation]))
        for place in list(job.positions):
            frame = encode_request([job.operations[place]])
            if len(frame) > self.limits.max_frame_bytes:
                text = f"the argument takes {len(frame)} bytes, at most {self.limits.max_frame_bytes} are allowed"
                job.outcomes[place] = Outcome(error=ProtocolViolation(text))
                job.positions.remove(place)
            else:
                frames.append(frame)
        return b"".join(frames)

    def _settle(self, job: _Job, exchange: Exchange) -> None:
        """Hand out the outcomes of one exchange and keep the program's books."""
        program, outcomes = job.program, exchange.outcomes
        program.strikes += exchange.timeouts
        start = len(job.prefix)
        lost: set[int] = set()
        if job.prefix and outcomes:
            loaded = outcomes[0]
            if loaded.error is None:
                program.info = loaded.value
                if exchange.failure is None:
                    lost = program.journal.verify(job.prefix[1:], outcomes[1:start])
            else:
                self._fail(job, loaded.error, exchange)
                return
        if exchange.failure is None and not lost and len(job.positions) == len(job.operations):  # nearly always
            job.answers = outcomes[start:] if start else outcomes
            program.journal.note_all(job.operations, job.answers)
            return
        for place, outcome in zip(job.positions, outcomes[start:], strict=False):
            operation = job.operations[place]
            if operation.session in lost and operation.name != "make":
                text = f"session {operation.session} could not be revived: the program is not deterministic"
                job.outcomes[place] = Outcome(error=ProgramDied(text))
                continue
            if operation.name == "make":
                lost.discard(operation.session)
            job.outcomes[place] = outcome
            program.journal.note(operation, outcome)
        if exchange.failure is not None:
            program.strikes += 1
            self._fail(job, exchange.failure, exchange)

    def _fail(self, job: _Job, error: ProgramError, exchange: Exchange) -> None:
        """The worker is dead, or useless: every operation that was not answered gets ``error``."""
        job.program.journal.clear()
        job.program.seat.vacate()
        for place in job.positions:
            job.outcomes.setdefault(place, Outcome(error=error))
        if job.opening:
            raise error

    def _check_layers(self, exchange: Exchange) -> None:
        if exchange.fault is not None:
            raise exchange.fault
        if exchange.layers is None:
            return
        level = isolation_level(exchange.layers)
        report = IsolationReport(level, exchange.layers)
        if not at_least(level, self.minimum_isolation):
            missing = "; ".join(f"{name}: {reason}" for name, reason in report.missing.items())
            raise SandboxError(
                f"isolation on this system is {level!r}, but {self.minimum_isolation!r} is required. Missing: "
                f"{missing}. To run generated code with less, ask for it: minimum_isolation={level!r}"
            )
        self._report = report

    def _after_fork(self) -> None:
        self._processes.forget()


_instances: weakref.WeakSet[Sandbox] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for sandbox in list(_instances):
        sandbox._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
