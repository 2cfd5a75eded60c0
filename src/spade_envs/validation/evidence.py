"""Everything the probes look at: probes are pure functions of it. :mod:`.collecting` collects it, once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from spade_envs.record import WIN_RETURN
from spade_envs.sandbox.types import Nudge, Outcome, ProgramError, ProgramInfo
from spade_envs.validation.config import ValidationConfig
from spade_envs.validation.finding import Finding
from spade_envs.validation.policies import KnowNothing
from spade_envs.validation.replay import Replays
from spade_envs.validation.rollout import Rollout, Runner


@dataclass(slots=True)
class SeedSurvey:
    """What the program shows at the start of one seed."""

    seed: int
    observation: str = ""
    solution: list[str] | None = None
    hint: str | None = None
    info: dict[str, Any] = field(default_factory=dict)
    tools: list[dict[str, Any]] = field(default_factory=list)
    errors: dict[str, ProgramError] = field(default_factory=dict)  # operation name -> error
    nudge: Nudge | None = None  # what was changed of the random numbers


@dataclass(slots=True)
class Malformed:
    """One malformed action right after reset."""

    seed: int
    action: str
    outcome: Outcome


class Twins(NamedTuple):
    """Two episodes with changed random draws that begin with the same text and want different answers."""

    entries: list[SeedSurvey]
    plays: list[Rollout]  # of both, by players that know nothing
    rare: bool  # whether few episodes are like them


@dataclass(slots=True)
class Evidence:
    """What a program did under all policies."""

    info: ProgramInfo
    source: str
    config: ValidationConfig
    runner: Runner
    given_hint: str | None = None
    survey: list[SeedSurvey] = field(default_factory=list)
    further: list[SeedSurvey] = field(default_factory=list)  # more seeds, where an answer seems to be given away
    solution_form: str | None = None  # the form in which solution() won, if it did
    solution_plays: dict[int, list[Rollout]] = field(default_factory=dict)  # seed -> attempts, the best one first
    asked_first: list[Rollout] = field(default_factory=list)  # the solution, played on the instance that was asked
    known_nothing: dict[str, tuple[KnowNothing, list[Rollout]]] = field(default_factory=dict)
    compared: list[Rollout] = field(default_factory=list)  # look-alikes, by players that do the same on each
    malformed: list[Malformed] = field(default_factory=list)
    leaks: list[Finding] = field(default_factory=list)  # answers that are given away at the start, or by a wrong try
    twins: list[Twins] = field(default_factory=list)
    wording: list[Finding] = field(default_factory=list)  # answers whose form nothing tells
    replays: Replays = field(default_factory=Replays)
    complete: bool = False

    @property
    def solutions(self) -> dict[int, list[str]]:
        """``solution()`` right after reset, by seed, where there is a non-empty one."""
        return {entry.seed: entry.solution for entry in self.survey if entry.solution}

    @property
    def solved(self) -> list[SeedSurvey]:
        """All seeds that were looked at and have a ``solution()``."""
        return [entry for entry in (*self.survey, *self.further) if entry.solution and "reset" not in entry.errors]

    @property
    def proven(self) -> bool:
        """Whether ``solution()`` won on every seed."""
        won = [attempts[0].return_(self.config) >= WIN_RETURN for attempts in self.solution_plays.values()]
        return bool(won) and len(won) == len(self.survey) and all(won)

    @property
    def look_alikes(self) -> list[SeedSurvey]:
        """The largest group of seeds with the same first observation but different solutions; often empty."""
        groups: dict[str, list[SeedSurvey]] = {}
        for entry in self.survey:
            if entry.solution:
                groups.setdefault(entry.observation, []).append(entry)
        hidden = [group for group in groups.values() if len({tuple(entry.solution or ()) for entry in group}) > 1]
        return max(hidden, key=len, default=[])

    @property
    def play_order(self) -> list[int]:
        """Seeds that know-nothing policies play: look-alikes first, since comparing them shows what play reveals."""
        alike = {entry.seed for entry in self.look_alikes}
        return sorted(self.config.seeds, key=lambda seed: seed not in alike)[: self.config.play_seeds]

    @property
    def rollouts(self) -> list[Rollout]:
        """All episodes played from the start."""
        played = [rollout for _, rollouts in self.known_nothing.values() for rollout in rollouts]
        return [rollout for attempts in self.solution_plays.values() for rollout in attempts] + played


def mean_return(rollouts: Sequence[Rollout], config: ValidationConfig) -> float:
    """Mean return of one policy's rollouts; those without an end count 0."""
    return sum(rollout.return_(config) for rollout in rollouts) / len(rollouts)
