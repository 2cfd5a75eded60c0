"""Play environments without and with their hint until it is clear enough how hard they are.

Records are taken in chunks. In each round of a chunk, every record that is not clear yet gets a batch of plain and a
batch of hinted episodes with the same episode seeds (so that regret compares like with like); all of them advance
together. A chunk is a function of (seed, records in it), and its plays are stored with the progress of the run in
one transaction: a killed run does that chunk again and comes to the same figures.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any

from spade_envs.batching import describe, own_hints
from spade_envs.calibration.intervals import Interval, difference_interval, mean_interval
from spade_envs.episode import Episode, PlayConfig, PlayTask, StopReason
from spade_envs.models.base import ChatModel, Sampling
from spade_envs.play import ModelPlayer, Player
from spade_envs.record import WIN_RETURN, EnvironmentRecord
from spade_envs.sandbox.types import ProgramError
from spade_envs.streaming import stream_episodes

if TYPE_CHECKING:
    from spade_envs.sandbox import Program, Sandbox


@dataclass(frozen=True, slots=True)
class CalibrationConfig:
    """How much to play.

    Raises:
        ValueError: if a number is out of range.
    """

    plays: int = 16  # most plain episodes of a record, and most hinted ones
    batch: int = 4  # of each, before the intervals are looked at again
    precision: float = 0.2  # half the width of the win rates' intervals that is narrow enough; 0: all plays
    confidence: float = 0.95
    hinted: bool = True
    seed: int = 0
    width: int = 64  # most episodes at once
    chunk: int = 8  # records at once

    def __post_init__(self) -> None:
        for name in ("plays", "batch", "width", "chunk"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if not 0.0 <= self.precision < 0.5:
            raise ValueError(f"precision is half the width of an interval, in [0, 0.5), got {self.precision}")
        if not 0.0 < self.confidence < 1.0:
            raise ValueError(f"confidence must lie in (0, 1), got {self.confidence}")


@dataclass(slots=True)
class Arm:
    """The plain or the hinted episodes of one record."""

    returns: list[float] = field(default_factory=list)
    turns: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    stops: Counter[str] = field(default_factory=Counter)
    model_error: str = ""  # why the model last gave no answer

    def take(self, episode: Episode) -> None:
        """Count one episode; a model's failure to answer says nothing about the environment and is only counted."""
        self.stops[str(episode.stop)] += 1
        if episode.stop is StopReason.MODEL_ERROR:
            self.model_error = episode.error
        else:
            self.returns.append(episode.return_)
            self.turns.append(episode.turns)
            self.tokens.append(episode.tokens)

    @property
    def wins(self) -> list[float]:
        """1 for each episode won, 0 for each other."""
        return [float(value >= WIN_RETURN) for value in self.returns]

    def narrow(self, config: CalibrationConfig) -> bool:
        """Whether the win rate's interval is narrow enough."""
        low, high = mean_interval(self.wins, 0.0, config.confidence)
        return high - low <= 2 * config.precision

    def to_dict(self, confidence: float) -> dict[str, Any]:
        """Return plays, win rate with its interval, mean return, turns, tokens and stop reasons, JSON-safe."""
        played = bool(self.returns)
        return {
            "plays": len(self.returns),
            "win_rate": fmean(self.wins) if played else None,
            "win_rate_interval": list(mean_interval(self.wins, 0.0, confidence)),
            "mean_return": fmean(self.returns) if played else None,
            "mean_turns": fmean(self.turns) if played else None,
            "mean_tokens": fmean(self.tokens) if played else None,
            "stops": dict(self.stops),
        }


@dataclass(slots=True)
class Calibration:
    """What is known about one record now; ``error`` is set where its program cannot be opened."""

    record: EnvironmentRecord
    plain: Arm = field(default_factory=Arm)
    hinted: Arm = field(default_factory=Arm)
    confidence: float = 0.95
    error: str = ""

    @property
    def regret(self) -> float | None:
        """Mean hinted return minus mean plain return, where both were played."""
        if not self.plain.returns or not self.hinted.returns:
            return None
        return fmean(self.hinted.returns) - fmean(self.plain.returns)

    @property
    def regret_interval(self) -> Interval:
        """Newcombe's interval of the regret; returns are taken to lie in [0, 1] until one is negative."""
        returns = self.plain.returns + self.hinted.returns
        lowest = -1.0 if min(returns, default=0.0) < 0 else 0.0
        return difference_interval(self.hinted.returns, self.plain.returns, lowest, self.confidence)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe dictionary."""
        return {
            "id": self.record.id,
            "env_id": self.record.env_id,
            "skill": self.record.skill,
            "kind": self.record.kind,
            "plain": self.plain.to_dict(self.confidence),
            "hinted": self.hinted.to_dict(self.confidence),
            "regret": self.regret,
            "regret_interval": list(self.regret_interval),
            "confidence": self.confidence,
            "error": self.error,
        }


def calibrate(
    player: ChatModel | Player,
    records: Sequence[EnvironmentRecord],
    sandbox: Sandbox,
    play: PlayConfig,
    config: CalibrationConfig | None = None,
    *,
    sampling: Sampling | None = None,
    on_episode: Callable[[EnvironmentRecord, Episode], None] | None = None,
) -> Iterator[Calibration]:
    """Yield what is found about each record, in order, a chunk at a time.

    An environment without a stored hint is hinted by its own ``hint()``; without either it is played plain only.
    Looking again after each batch makes the intervals of a stopped record a little too narrow: choose the precision
    accordingly, or 0 for a fixed number of plays.

    Args:
        player: a chat model or another player.
        records: what to play.
        sandbox: where to play.
        play: budgets, prompts, return mode; a record's own turn limit bounds its episodes too.
        config: how much to play.
        sampling: for chat models.
        on_episode: called with each finished episode.

    Raises:
        ModelError, SandboxError: if the machinery fails. A failing program is reported in its Calibration.
    """
    config = config or CalibrationConfig()
    for start in range(0, len(records), config.chunk):
        yield from _chunk(player, records[start : start + config.chunk], sandbox, play, config, sampling, on_episode)


def _chunk(
    player: ChatModel | Player,
    records: Sequence[EnvironmentRecord],
    sandbox: Sandbox,
    play: PlayConfig,
    config: CalibrationConfig,
    sampling: Sampling | None,
    on_episode: Callable[[EnvironmentRecord, Episode], None] | None,
) -> list[Calibration]:
    results = [Calibration(record, confidence=config.confidence) for record in records]
    programs: dict[int, Program] = {}
    try:
        for index, record in enumerate(records):
            try:
                programs[index] = sandbox.open(record.source, allow=record.allow)
            except ProgramError as error:
                results[index].error = describe(error)
        for first in range(0, config.plays, config.batch):
            open_ones = [i for i in programs if not first or not _clear(results[i], config)]
            if not open_ones:
                break
            last = min(first + config.batch, config.plays)
            wanted = [(i, seed) for i in open_ones for seed in _seeds(config.seed, records[i], first, last)]
            tasks = _tasks(programs, records, wanted, sandbox, config.hinted)
            one = _player(player, sampling, f"{config.seed}/{records[0].id}/{first}")
            stream = stream_episodes(one, [task for _, task in tasks], sandbox, play, width=config.width)
            for place, episode in stream:
                index, task = tasks[place]
                (results[index].plain if task.hint is None else results[index].hinted).take(episode)
                if on_episode is not None:
                    on_episode(records[index], episode)
    finally:
        for program in programs.values():
            program.close()
    return results


def _clear(result: Calibration, config: CalibrationConfig) -> bool:
    hintless = not sum(result.hinted.stops.values())
    return result.plain.narrow(config) and (hintless or result.hinted.narrow(config))


def _seeds(seed: int, record: EnvironmentRecord, first: int, last: int) -> list[int]:
    """The seeds of episodes ``first`` to ``last``: the same whatever is played besides."""
    rng = random.Random(f"{seed}/{record.id}")
    return [rng.getrandbits(31) for _ in range(last)][first:]


def _tasks(
    programs: dict[int, Program],
    records: Sequence[EnvironmentRecord],
    wanted: Sequence[tuple[int, int]],
    sandbox: Sandbox,
    hinted: bool,
) -> list[tuple[int, PlayTask]]:
    """Return (index of the record, task): a plain one for each wanted episode, and a hinted one if there is a hint."""
    asked = [(i, seed) for i, seed in wanted if hinted and not records[i].hint]
    own = dict(zip(asked, own_hints(sandbox, [(programs[i], seed) for i, seed in asked]), strict=True))
    tasks = []
    for i, seed in wanted:
        record, program = records[i], programs[i]
        tasks.append((i, PlayTask(program, seed, key=record.id, max_turns=record.max_turns)))
        hint = (record.hint or own[i, seed]) if hinted else None
        if hint:
            tasks.append((i, PlayTask(program, seed, hint, key=record.id, max_turns=record.max_turns)))
    return tasks


def _player(player: ChatModel | Player, sampling: Sampling | None, name: str) -> Player:
    """A model samples from another seed in each round, or equal conversations would get equal replies again."""
    if not isinstance(player, ChatModel):
        return player
    sampling = sampling or Sampling()
    derived = hashlib.blake2b(f"{sampling.seed}/{name}".encode(), digest_size=6).digest()
    return ModelPlayer(player, replace(sampling, seed=int.from_bytes(derived, "big")))
