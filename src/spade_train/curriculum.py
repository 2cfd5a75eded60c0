"""What each cycle works on: documents, skills, environments to replay, seeds.

Everything follows from (seed, cycle, rank) and from what the memory holds before the cycle, so a resumed run works
on the same as one that was never stopped.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from spade_envs.corpus import Document
from spade_envs.record import EnvironmentRecord
from spade_train.cycle import Design, Plan

_LEARNABLE = (0.1, 0.9)


class CorpusLike(Protocol):
    """What a curriculum needs of :class:`spade_envs.corpus.Corpus`."""

    name: str
    fingerprint: str

    def sample(self, seed: int, index: int) -> Document:
        """Return the ``index``-th document of a seeded order."""
        ...


class ResumeError(RuntimeError):
    """A checkpoint does not belong to the run that would resume from it."""


@dataclass(frozen=True, slots=True)
class CurriculumConfig:
    """Sizes of a cycle on one rank, and when environments are replayed."""

    documents: int = 3
    places: int = 24
    reserved: int = 6  # places for environments from the memory
    replay_plays: int = 64  # plain episodes after which an environment is not replayed any more
    seed: int = 0


class SelfPlayCurriculum:
    """Documents in the corpus' seeded order, skills in rotation, replays from the learnable part of the memory.

    Args:
        corpus: where documents come from.
        skills: of the prompt set, in the order of rotation.
        config: sizes.
    """

    def __init__(self, corpus: CorpusLike, skills: Sequence[str], config: CurriculumConfig) -> None:
        if not skills:
            raise ValueError("the curriculum needs at least one skill")
        self._corpus, self._skills, self._config = corpus, tuple(skills), config

    def plan(self, cycle: int, rank: int, world: int, memory: Iterable[EnvironmentRecord]) -> Plan:
        """Return what ``rank`` of ``world`` works on in ``cycle``.

        Args:
            cycle: counted from 0.
            rank: this process.
            world: number of processes.
            memory: candidates for replay, in an order that is the same on every rank.
        """
        config = self._config
        first = (cycle * world + rank) * config.documents
        designs = tuple(
            Design(self._corpus.sample(config.seed, index), self._skills[index % len(self._skills)])
            for index in range(first, first + config.documents)
        )
        replays: Sequence[EnvironmentRecord] = ()
        if config.reserved:
            ranked = self._ranked(memory, _seed(config.seed, cycle))
            replays = ranked[rank::world][: config.places]  # each rank its own environments
        return Plan(_seed(config.seed, cycle, rank), designs, tuple(replays), config.reserved)

    def _ranked(self, memory: Iterable[EnvironmentRecord], seed: int) -> list[EnvironmentRecord]:
        """Return records worth playing again, in seeded random order."""
        low, high = _LEARNABLE
        worth = [
            record
            for record in memory
            if (rate := record.statistics.win_rate) is not None
            and low <= rate <= high
            and record.statistics.plain_plays < self._config.replay_plays
        ]
        random.Random(seed).shuffle(worth)
        return worth

    def state_dict(self) -> dict[str, Any]:
        """Return what must be equal for a resume to go on with the same cycles."""
        return {"seed": self._config.seed, "corpus": self._corpus.fingerprint, "skills": list(self._skills)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Check a checkpoint's state against this run.

        Raises:
            ResumeError: if the corpus, the skills or the seed changed.
        """
        _compare(self.state_dict(), state)


class PoolCurriculum:
    """A fixed pool of environments, played by the agent alone in a seeded order without repeats.

    Args:
        pool: the environments.
        environments: how many of them one cycle plays on one rank.
        seed: fixes the order.
    """

    def __init__(self, pool: Sequence[EnvironmentRecord], environments: int, seed: int) -> None:
        if not pool:
            raise ValueError("the pool holds no environment")
        self._pool, self._environments, self._seed = list(pool), environments, seed

    def plan(self, cycle: int, rank: int, world: int, memory: Iterable[EnvironmentRecord]) -> Plan:
        """Return what ``rank`` of ``world`` plays in ``cycle``; the memory is not looked at."""
        first = (cycle * world + rank) * self._environments
        replays = []
        for index in range(first, first + self._environments):
            epoch, place = divmod(index, len(self._pool))
            order = list(range(len(self._pool)))
            random.Random(_seed(self._seed, epoch)).shuffle(order)
            replays.append(self._pool[order[place]])
        return Plan(_seed(self._seed, cycle, rank), (), tuple(replays), self._environments)

    def state_dict(self) -> dict[str, Any]:
        """Return what must be equal for a resume to go on with the same cycles."""
        ids = "".join(record.id for record in self._pool)
        return {"seed": self._seed, "pool": hashlib.sha256(ids.encode()).hexdigest()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Check a checkpoint's state against this run.

        Raises:
            ResumeError: if the pool or the seed changed.
        """
        _compare(self.state_dict(), state)


Curriculum = SelfPlayCurriculum | PoolCurriculum


def _compare(mine: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    for name, value in mine.items():
        if other.get(name) != value:
            raise ResumeError(
                f"the checkpoint was written with another {name}: expected {value!r}, got {other.get(name)!r}. "
                f"Resume with the recipe of the run, or start a new one in another output_dir."
            )


def _seed(*parts: int) -> int:
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=6).digest()
    return int.from_bytes(digest, "big")
