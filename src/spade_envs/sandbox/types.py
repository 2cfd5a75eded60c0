"""What passes between a caller and the sandbox: limits, operations, outcomes and errors.

Two families of errors are kept apart on purpose. A :class:`ProgramError` is the generated program's fault: it
is counted, reported to the designer, and the run goes on. A :class:`SandboxError` is the machinery's fault
(no worker can be started, the kernel lacks a layer): the run must stop with a clear message.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

IsolationLevel = Literal["full", "wasi", "partial", "static"]


class SandboxError(RuntimeError):
    """The sandbox itself failed: it cannot start, or isolation is below what was asked for."""


class ProgramError(Exception):
    """A generated program misbehaved. ``kind`` is a short stable word for counting."""

    kind = "program"


@dataclass(frozen=True, slots=True)
class Reason:
    """One refusal by the static policy, in words that a designer can act on."""

    line: int
    column: int
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}"


class PolicyViolation(ProgramError):
    """The source was refused before anything ran."""

    kind = "policy"

    def __init__(self, reasons: tuple[Reason, ...]) -> None:
        self.reasons = reasons
        super().__init__("; ".join(str(reason) for reason in reasons[:5]))


class ProgramRaised(ProgramError):
    """The program raised an exception. ``line`` is a line of the generated source, 0 if unknown."""

    kind = "raised"

    def __init__(self, exception: str, message: str, line: int = 0) -> None:
        self.exception, self.message, self.line = exception, message, line
        where = f" (line {line})" if line else ""
        super().__init__(f"{exception}: {message}{where}")


class ProtocolViolation(ProgramError):
    """The program returned something of the wrong shape or type."""

    kind = "protocol"


class ProgramTimeout(ProgramError):
    """The program used more time than an operation may take."""

    kind = "timeout"


class ProgramDied(ProgramError):
    """The worker died while it ran the program: out of memory, stack overflow, forbidden system call."""

    kind = "died"


class ProgramQuarantined(ProgramError):
    """The program timed out or died too often and is not run any more."""

    kind = "quarantined"


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on one program.

    The soft limits count CPU time, so that a busy machine does not change what a program does. The hard limit is
    wall-clock, stretched for a worker that did not get its share of the processors.
    """

    soft_seconds: float = 1.0  # one operation: interrupted inside the worker
    hard_seconds: float = 3.0  # one operation past the soft limit: the worker is killed
    load_seconds: float = 5.0  # compile and import of the source
    memory_mb: int = 256  # address space above the zygote's own
    cpu_seconds: int = 3600  # CPU time of one worker in all
    max_source_chars: int = 200_000
    max_observation_chars: int = 65_536
    max_frame_bytes: int = 8 << 20
    quarantine_after: int = 3  # time-outs and deaths of one program before it is not run any more


RANDOM_WORDS = 624
"""Words that a generator (Mersenne Twister) makes at once, each the 32 bits of one draw; these can be changed."""


class Nudge(NamedTuple):
    """What of an episode's random words is changed.

    The generators of an episode are numbered as they are first seeded: 0 is the instance's own (module-level
    functions), the next one of the next seed 1, and so on; those of equal seeds have one number, as they give equal
    numbers. ``kind`` is one of:

    - ``word``: ``word`` of generator ``generator`` draws 0 (``variant`` 0) or 2**30 (1), which no range rejects.
    - ``tail``: all its words from ``word`` on are others; ``variant`` says which.
    - ``poor``: the first words of the first ``generator`` generators are mostly 0 and never anything but four values,
      so that much of what is drawn is the same from variant to variant: what is shown then repeats, and what is hidden
      shows where it differs.
    """

    kind: str
    generator: int
    word: int
    variant: int


class Operation(NamedTuple):
    """One thing to do with one session (an instance) of a loaded program.

    ``name`` is one of: ``make`` (argument: keyword arguments of the constructor), ``reset`` (seed), ``step``
    (action), ``hint``, ``solution``, ``tools``, ``copy`` (argument: the new session's number; deep copy with the
    random generator's state), ``sibling`` (argument: the new session's number; a new instance that shares its module,
    as all instances do outside the sandbox), ``inspect`` (argument: "brief", "full" or "why"; the inside of a tool
    environment), ``nudge`` (argument: a :class:`Nudge`, or None; from the next reset
    on some random words are others), ``close``. ``session`` numbers are the caller's.
    """

    name: str
    session: int
    argument: Any = None


class ResetResult(NamedTuple):
    """What ``reset`` returned."""

    observation: str
    info: dict[str, Any]


class StepResult(NamedTuple):
    """What ``step`` returned; the reward is finite, not yet clipped."""

    observation: str
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


class Outcome(NamedTuple):
    """The result of one operation: a value, or the error that the program made.

    The value is a :class:`ResetResult` for ``reset``, a :class:`StepResult` for ``step``, a ``str`` for ``hint``,
    a ``list[str]`` of actions or None (no such method) for ``solution``, a list of OpenAI function schemas for
    ``tools``, a :class:`~spade_envs.sandbox.inspection.ToolInspection` for ``inspect``, else None.
    """

    value: Any = None
    error: ProgramError | None = None

    def unwrap(self) -> Any:
        """Return the value or raise the error."""
        if self.error is not None:
            raise self.error
        return self.value


@dataclass(frozen=True, slots=True)
class ProgramInfo:
    """What the worker found when it loaded the source."""

    class_name: str
    has_hint: bool
    has_solution: bool
    has_tools: bool
    description: str = ""  # the class docstring
    sees_addresses: bool = True  # may depend on where in memory its objects lie, which differs between processes


@dataclass(frozen=True, slots=True)
class IsolationReport:
    """Which layers hold. ``layers`` maps a layer to "on" or to the reason why it is off."""

    level: IsolationLevel
    layers: Mapping[str, str] = field(default_factory=dict)

    @property
    def missing(self) -> dict[str, str]:
        """Layers that are off, with the reason."""
        return {name: state for name, state in self.layers.items() if state != "on"}
