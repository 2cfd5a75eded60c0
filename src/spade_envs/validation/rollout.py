"""Playing many short episodes of one program in step: one round trip to the worker for each turn of all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from spade_envs.returns import clip_reward, episode_return
from spade_envs.sandbox import Program
from spade_envs.sandbox.types import (
    Nudge,
    Operation,
    Outcome,
    ProgramDied,
    ProgramError,
    ProgramQuarantined,
    ProgramRaised,
    ProgramTimeout,
    ProtocolViolation,
    StepResult,
)
from spade_envs.validation.config import ValidationConfig

_NOT_MADE = (ProgramRaised, ProtocolViolation)
_MAKING = ("make", "sibling", "copy")
_TROUBLES = (ProgramTimeout, ProgramDied, ProgramQuarantined)
_SLOW = 0.01  # seconds an operation
_BATCH_SECONDS = 1.0
_LEAST_OPERATIONS = 300  # that any collection needs
_BATCH_OPERATIONS = 64  # at most, however fast it was so far: the next ones may each take all that they are allowed


class Turn(NamedTuple):
    """What the player sees and is paid after an action."""

    observation: str
    reward: float
    terminated: bool
    truncated: bool


@dataclass(slots=True)
class Rollout:
    """One episode: the policy's name, the seed, the actions, and what came of them."""

    policy: str
    seed: int
    session: int = -1
    first: str = ""
    actions: list[str] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    criteria_errors: str = ""  # errors of a tool environment's predicates, as its base class reports them
    error: ProgramError | None = None  # of make, reset, or the last action
    stopped: bool = False  # the policy had no further action
    cut: bool = False  # we stopped watching before the bound
    nudge: Nudge | None = None  # what was changed of the random numbers

    @property
    def observation(self) -> str:
        """The latest observation."""
        return self.turns[-1].observation if self.turns else self.first

    @property
    def terminated(self) -> bool:
        """Whether the program ended the episode by itself."""
        return bool(self.turns) and self.turns[-1].terminated

    @property
    def ended(self) -> bool:
        """Whether the episode is over: terminated or truncated."""
        return bool(self.turns) and (self.turns[-1].terminated or self.turns[-1].truncated)

    @property
    def rewards(self) -> list[float]:
        """The rewards in order."""
        return [turn.reward for turn in self.turns]

    def return_(self, config: ValidationConfig) -> float:
        """The episode's return in [-1, 1]; 0 if the program raised or never terminated."""
        if self.error is not None or not self.turns:
            return 0.0
        if config.return_mode == "final":  # asked for often
            last = self.turns[-1]
            return clip_reward(last.reward) if last.terminated else 0.0
        return episode_return(self.rewards, self.terminated, config.return_mode, config.discount)

    def trace(self) -> list[Turn]:
        """The first observation and all turns, for comparison."""
        return [Turn(self.first, 0.0, False, False), *self.turns]


Policy = Callable[[Rollout], str | None]
"""Chooses the next action from what was seen so far; None ends the episode."""


class SolutionPolicy:
    """Plays what ``solution()`` says: the list in order, or (``always_ask``) the first action of a new one each turn.

    When the list is used up before the episode ends, ``solution()`` is asked again.
    """

    def __init__(self, solution: Sequence[str], form: Callable[[str], str], always_ask: bool) -> None:
        self._queue = list(solution)
        self._form = form
        self._always_ask = always_ask

    def wants_solution(self, rollout: Rollout) -> bool:
        """Whether the program must be asked before the next action."""
        return bool(rollout.turns) and (self._always_ask or not self._queue)

    def tell(self, solution: Sequence[str]) -> None:
        """Take what the program said; empty if it said nothing or failed."""
        self._queue = list(solution)

    def __call__(self, rollout: Rollout) -> str | None:
        """The next action, None if there is none."""
        return self._form(self._queue.pop(0)) if self._queue else None


class Trouble(NamedTuple):
    """A time-out, death or quarantine: the operation that caused it and what was played before."""

    error: ProgramError
    operation: Operation
    seed: int | None
    actions: tuple[str, ...]


class CollectionStopped(Exception):
    """The program cannot be probed any further; the runner's ``trouble`` or ``overdue`` says why."""


class Runner:
    """Sends batches to one program and remembers what was done to each session.

    Raises :class:`CollectionStopped` from :meth:`run` after the first time-out or death, or when the budget of
    wall-clock seconds is used up, since a program that does this is refused whatever else it does.
    """

    def __init__(self, program: Program, seconds: float) -> None:
        self.program = program
        self.seconds = seconds
        self.started = time.monotonic()
        self.trouble: Trouble | None = None
        self.overdue = False
        self.operations = 0
        self._idle: list[int] = []  # instances whose episode is over
        self._unmade: set[int] = set()
        self._history: dict[int, tuple[int | None, list[str]]] = {}

    def new_session(self) -> int:
        """A session number that is not in use."""
        return self.program.new_session_number()

    def run(self, operations: Sequence[Operation]) -> list[Outcome]:
        """Run a batch in order and return its outcomes.

        Raises:
            CollectionStopped: after a time-out, a death, or too much time.
            SandboxError: if the machinery fails.
        """
        outcomes: list[Outcome] = []
        # A slow program gets small batches, so that the budget is kept.
        start = 0
        while start < len(operations):
            size = max(1, int(_BATCH_SECONDS / self.pace)) if self.pace > _SLOW else _BATCH_OPERATIONS
            size = min(size, _BATCH_OPERATIONS)
            outcomes += self._run(operations[start : start + size])
            start += size
        return outcomes

    @property
    def pace(self) -> float:
        """Seconds that an operation took on average; 0 before the first."""
        return (time.monotonic() - self.started) / self.operations if self.operations else 0.0

    def check_pace(self) -> None:
        """Stop now if the program is so slow that the budget cannot suffice.

        Raises:
            CollectionStopped: if it is.
        """
        if self.pace * _LEAST_OPERATIONS > self.seconds:
            self.overdue = True
            raise CollectionStopped

    def _run(self, operations: Sequence[Operation]) -> list[Outcome]:
        outcomes = self.program.run(operations)
        self.operations += len(operations)
        for operation, outcome in zip(operations, outcomes, strict=True):
            error = outcome.error
            if error is not None and operation.name in _MAKING and isinstance(error, _NOT_MADE):
                self._unmade.add(operation.session if operation.name == "make" else operation.argument)
            elif operation.session in self._unmade:
                continue  # there is no instance, which is not the worker's death
            if error is not None and isinstance(error, _TROUBLES):
                seed, actions = self._history.get(operation.session, (None, []))
                self.trouble = Trouble(error, operation, seed, tuple(actions))
                raise CollectionStopped
            self._remember(operation)
        if time.monotonic() - self.started > self.seconds:
            self.overdue = True
            raise CollectionStopped
        return outcomes

    def _remember(self, operation: Operation) -> None:
        if operation.name == "reset":
            self._history[operation.session] = (operation.argument, [])
        elif operation.name == "step":
            self._history.setdefault(operation.session, (None, []))[1].append(operation.argument)
        elif operation.name == "copy":
            seed, actions = self._history.get(operation.session, (None, []))
            self._history[operation.argument] = (seed, list(actions))

    def play(
        self, pairs: Sequence[tuple[Rollout, Policy]], max_steps: int, *, watch: int | None = None, steps: int = 0
    ) -> None:
        """Play all rollouts to their ends, turn by turn together (so instances are always interleaved).

        A rollout ends when the program ends it or raises, when its policy returns None, or after ``max_steps``.
        Instances whose earlier episode is over are used again.
        With ``watch``, rollouts of other seeds than this one are cut after ``steps``.
        """
        starts: list[Operation] = []
        places: list[int] = []  # of the resets among the outcomes
        for rollout, _ in pairs:
            if self._idle and rollout.nudge is None:
                rollout.session = self._idle.pop()
            else:
                rollout.session = self.new_session()
                starts.append(Operation("make", rollout.session, {}))
            if rollout.nudge is not None:
                starts.append(Operation("nudge", rollout.session, rollout.nudge))
            places.append(len(starts))
            starts.append(Operation("reset", rollout.session, rollout.seed))
        outcomes = self.run(starts)
        for place, (rollout, _) in zip(places, pairs, strict=True):
            before = place - 1 if rollout.nudge is None else place - 2
            made = outcomes[before].error if before >= 0 and starts[before].name == "make" else None
            rollout.error = made or outcomes[place].error
            if rollout.error is None:
                rollout.first = outcomes[place].value.observation
        live = [pair for pair in pairs if pair[0].error is None]
        self._play(live, max_steps, watch, steps)
        # Making an instance costs more than a reset, and that reset() sets all state is what replays look into.
        self._idle += [
            rollout.session
            for rollout, policy in pairs
            if rollout.ended
            and rollout.error is None
            and rollout.nudge is None
            and not isinstance(policy, SolutionPolicy)
        ]

    def _play(self, live: list[tuple[Rollout, Policy]], max_steps: int, watch: int | None, steps: int) -> None:
        for step in range(max_steps):
            if watch is not None and step == steps:
                for rollout, _ in live:
                    rollout.cut = rollout.seed != watch
                live = [pair for pair in live if not pair[0].cut]
            live = self._advance(live)
            if not live:
                return

    def play_on(self, pairs: Sequence[tuple[Rollout, Policy]], max_steps: int) -> None:
        """Go on with rollouts that were cut, until they have ``max_steps`` steps."""
        for rollout, _ in pairs:
            rollout.cut = False
        live = list(pairs)
        while live:
            live = [pair for pair in self._advance(live) if len(pair[0].turns) < max_steps]

    def _advance(self, live: Sequence[tuple[Rollout, Policy]]) -> list[tuple[Rollout, Policy]]:
        moves: list[tuple[Rollout, Policy]] = []
        operations: list[Operation] = []
        asking = [(r, policy) for r, policy in live if isinstance(policy, SolutionPolicy) and policy.wants_solution(r)]
        if asking:
            told = self.run([Operation("solution", rollout.session) for rollout, _ in asking])
            for (_, asked), outcome in zip(asking, told, strict=True):
                asked.tell(outcome.value or [])
        for rollout, policy in live:
            action = policy(rollout)
            if action is None:
                rollout.stopped = True
                continue
            rollout.actions.append(action)
            operations.append(Operation("step", rollout.session, action))
            moves.append((rollout, policy))
        if not operations:
            return []
        for (rollout, _), outcome in zip(moves, self.run(operations), strict=True):
            if outcome.error is not None:
                rollout.error = outcome.error
            else:
                rollout.turns.append(as_turn(outcome.value))
                if isinstance(errors := outcome.value.info.get("criteria_errors"), str):
                    rollout.criteria_errors = rollout.criteria_errors or errors
        return [(rollout, policy) for rollout, policy in moves if rollout.error is None and not rollout.ended]


def as_turn(result: StepResult) -> Turn:
    """A step's result without its info dictionary."""
    return Turn(result.observation, result.reward, result.terminated, result.truncated)
