"""What goes into one cycle of self-play and what comes out of it."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from spade_envs.corpus import Document
from spade_envs.play import Episode, StopReason
from spade_envs.record import EnvironmentRecord
from spade_train.pool_sources.trusted import is_procedural
from spade_train.rewards import DesignOutcome, Pay
from spade_train.rows import Row

if TYPE_CHECKING:
    from spade_envs.designer import Attempt, DesignPrompt
    from spade_envs.sandbox import Program


class Sample(NamedTuple):
    """One sampled turn; log-probabilities are None where the backend does not give them."""

    ids: list[int]
    logprobs: list[float] | None


class Sampler(Protocol):
    """Samples from the policy as it is now."""

    def sample(self, prompts: Sequence[list[int]], max_tokens: int, temperature: float | None = None) -> list[Sample]:
        """Return one sample for each prompt (ids), of at most ``max_tokens`` ids including the end-of-turn token.

        On a collective backend every rank must call equally often; ranks without work pass no prompts.
        """
        ...

    def busy(self, prompts: int) -> bool:
        """Whether there is work: on this rank, or on any rank where the backend is collective."""
        ...


class DesignerLike(Protocol):
    """What a cycle needs of :class:`spade_envs.designer.Designer`."""

    def prompt(self, document: Document, skill: str, rng: random.Random, *, exemplars: bool = True) -> DesignPrompt:
        """Return the conversation that asks for one environment; on request without exemplars."""
        ...

    def admit(self, text: str, prompt: DesignPrompt) -> Attempt:
        """Extract, validate and compare a reply; nothing is written to the memory."""
        ...

    def repeats(self, record: EnvironmentRecord, others: Iterable[EnvironmentRecord]) -> EnvironmentRecord | None:
        """Return the first of ``others``, records not yet stored, that ``record`` repeats."""
        ...


@dataclass(frozen=True, slots=True)
class CycleConfig:
    """Sizes, budgets and pay of one cycle on one rank."""

    designs: int = 6  # programs for each document
    plays: int = 6  # episodes of each environment, plain; as many again hinted
    hinted: bool = True
    hints: int = 1  # hints that the policy writes for each environment; they share the hinted plays
    places: int = 18  # environments that can be played
    slots: int = 126  # rows of the training batch
    design_tokens: int = 8192
    hint_tokens: int = 512
    hint_temperature: float = 0.3
    context_tokens: int = 32_768  # prompt and completion of one row
    window: int = 1  # rollouts for which one set of environments is played
    trained: frozenset[str] = frozenset({"designer", "agent"})  # roles whose rows are trained on
    pay: Pay = field(default_factory=Pay)


class Design(NamedTuple):
    """One document to design environments for."""

    document: Document
    skill: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What one cycle works on.

    ``replays`` are candidates in order of preference: they fill the ``reserved`` places, and the places that refused
    programs, and candidates that cannot be opened, leave free. In the first rollout of a window (``phase`` 0) programs
    are written; in the others the environments of the window are played again. ``last`` marks the run's last rollout.
    """

    seed: int
    designs: tuple[Design, ...] = ()
    replays: tuple[EnvironmentRecord, ...] = ()
    reserved: int = 0
    phase: int = 0
    last: bool = False


@dataclass(slots=True)
class Played:
    """One environment of the cycle with its episodes."""

    record: EnvironmentRecord
    program: Program
    seeds: list[int]
    fresh: bool  # written in this window
    plain: list[Episode] = field(default_factory=list)
    hinted: list[Episode] = field(default_factory=list)

    @property
    def group(self) -> str:
        """Name of what its plain episodes are compared in: the environment, or the question of a procedural task."""
        return f"{self.record.id}/{self.seeds[0]}" if is_procedural(self.record) else self.record.id

    def returns(self, *, hinted: bool) -> tuple[float, ...]:
        """Returns of the episodes in which the program did not fail."""
        episodes = self.hinted if hinted else self.plain
        return tuple(e.return_ for e in episodes if e.stop is not StopReason.PROGRAM_ERROR)

    @property
    def errors(self) -> list[str]:
        """What the program did wrong in play."""
        return [e.error for e in self.plain + self.hinted if e.stop is StopReason.PROGRAM_ERROR]


@dataclass(slots=True)
class Written:
    """One reply of the designer and what became of it."""

    row: Row
    attempt: Attempt
    played: Played | None = None  # only in the cycle in which it was written
    environment: str = ""  # id of the record that is played for it; copies share one
    outcome: DesignOutcome = field(default_factory=lambda: DesignOutcome("refused"))


@dataclass(slots=True)
class Hinted:
    """One hint that the policy wrote: its row, and for which of the environment's seeds it was used."""

    row: Row
    played: Played
    seeds: list[int] = field(default_factory=list)  # places in ``played.seeds``; none if it was refused
    reason: str = ""  # why it was refused


@dataclass(slots=True)
class Cycle:
    """Everything that came out of one cycle on one rank.

    ``written`` are this cycle's replies. ``paid`` are those whose reward became known in this cycle: the same ones
    where environments are written in every cycle, else those of the window that has ended.
    """

    rows: list[Row]  # exactly ``CycleConfig.slots``
    written: list[Written]
    played: list[Played]
    seconds: dict[str, float]  # of each stage, wall-clock
    paid: list[Written] = field(default_factory=list)
    hints: list[Hinted] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)  # further metrics
