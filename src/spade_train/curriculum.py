"""What each cycle works on: documents, skills, environments to replay, seeds.

Everything follows from (seed, cycle, rank) and from what the memory holds before the cycle, so a resumed run works
on the same as one that was never stopped.
"""

from __future__ import annotations

import hashlib
import logging
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from spade_envs.corpus import Document
from spade_envs.record import EnvironmentRecord
from spade_train.cycle import Design, Plan

logger = logging.getLogger(__name__)

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
    window: int = 1  # rollouts for which one set of environments is played
    active_skills: int = 0  # skills of one window, the next ones in the next; 0: documents take them in turn
    easy_share: float = 0.0  # share of the replays that are mastered environments
    cycles: int = 0  # of the whole run; 0: unknown


class SelfPlayCurriculum:
    """Documents in the corpus' seeded order, skills in rotation, replays from the learnable part of the memory.

    With windows of ``k`` rollouts documents are drawn in the first one of each. With ``active_skills`` the skills of
    window ``w`` are the next so many in the order of the prompt set, round robin, and the documents of all ranks take
    them in turn; else the documents of the whole run take all skills in turn.

    Args:
        corpus: where documents come from.
        skills: of the prompt set, in the order of rotation.
        config: sizes.
    """

    def __init__(self, corpus: CorpusLike, skills: Sequence[str], config: CurriculumConfig) -> None:
        if not skills:
            raise ValueError("the curriculum needs at least one skill")
        self._corpus, self._skills, self._config = corpus, tuple(skills), config

    def plan(
        self,
        cycle: int,
        rank: int,
        world: int,
        memory: Iterable[EnvironmentRecord],
        retired: Mapping[str, str] | None = None,
    ) -> Plan:
        """Return what ``rank`` of ``world`` works on in ``cycle``.

        Args:
            cycle: counted from 0.
            rank: this process.
            world: number of processes.
            memory: candidates for replay, in an order that is the same on every rank.
            retired: why environments are not replayed any more, by id.
        """
        config = self._config
        window, phase = divmod(cycle, config.window)
        designs: tuple[Design, ...] = ()
        if phase == 0:
            first = (window * world + rank) * config.documents
            designs = tuple(
                Design(self._corpus.sample(config.seed, index), self._skill(index, window))
                for index in range(first, first + config.documents)
            )
        replays: Sequence[EnvironmentRecord] = ()
        if config.reserved:
            learnable, easy = self._ranked(memory, retired or {}, _seed(config.seed, cycle))
            easy = easy[rank::world][: round(config.easy_share * config.places)]
            replays = mixed(learnable[rank::world], easy, config.easy_share)[: config.places]  # each rank its own
        last = cycle + 1 == config.cycles
        return Plan(_seed(config.seed, cycle, rank), designs, tuple(replays), config.reserved, phase, last)

    def _skill(self, index: int, window: int) -> str:
        """Return the skill of the ``index``-th document of the run."""
        active = self._config.active_skills
        if not active:
            return self._skills[index % len(self._skills)]
        return self._skills[(window * active + index % active) % len(self._skills)]

    def _ranked(
        self, memory: Iterable[EnvironmentRecord], retired: Mapping[str, str], seed: int
    ) -> tuple[list[EnvironmentRecord], list[EnvironmentRecord]]:
        """Return records worth playing again, and mastered ones, each in seeded random order."""
        low, high = _LEARNABLE
        played = [(record, rate) for record in memory if (rate := record.statistics.win_rate) is not None]
        worth = [
            record
            for record, rate in played
            if low <= rate <= high
            and record.statistics.plain_plays < self._config.replay_plays
            and record.id not in retired
        ]
        easy = [record for record, rate in played if rate > high]
        random.Random(seed).shuffle(worth)
        random.Random(seed).shuffle(easy)
        return worth, easy

    def state_dict(self) -> dict[str, Any]:
        """Return what must be equal for a resume to go on with the same cycles."""
        config = self._config
        state = {"seed": config.seed, "corpus": self._corpus.fingerprint, "skills": list(self._skills)}
        return state | {"window": config.window, "active_skills": config.active_skills}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Check a checkpoint's state against this run.

        Raises:
            ResumeError: if the corpus, the skills or the seed changed.
        """
        _compare(self.state_dict(), state)


class PoolCurriculum:
    """A fixed pool of environments, played by the agent alone in a seeded order, each once before any comes again.

    A cycle plays no environment twice on one rank: where it reaches into the next round of the pool, those that it
    has already are passed over for the ones that follow.

    Args:
        pool: the environments.
        environments: how many of them one cycle plays on one rank; all of a pool that has fewer.
        seed: fixes the order.
    """

    def __init__(self, pool: Sequence[EnvironmentRecord], environments: int, seed: int) -> None:
        if not pool:
            raise ValueError("the pool holds no environment")
        self._pool, self._seed = list({record.id: record for record in pool}.values()), seed
        self._environments = min(environments, len(self._pool))
        if self._environments < environments:
            logger.warning(
                "the pool holds %d environments, fewer than the %d of a cycle: each is played in every cycle, and the "
                "rows of the other places stay empty; lower environments and raise plays to use them",
                *(self._environments, environments),
            )

    def plan(
        self,
        cycle: int,
        rank: int,
        world: int,
        memory: Iterable[EnvironmentRecord],
        retired: Mapping[str, str] | None = None,
    ) -> Plan:
        """Return what ``rank`` of ``world`` plays in ``cycle``; the memory is not looked at."""
        index = (cycle * world + rank) * self._environments
        orders: dict[int, list[int]] = {}
        replays: dict[str, EnvironmentRecord] = {}
        while len(replays) < self._environments:
            epoch, place = divmod(index, len(self._pool))
            if epoch not in orders:
                orders[epoch] = list(range(len(self._pool)))
                random.Random(_seed(self._seed, epoch)).shuffle(orders[epoch])
            record = self._pool[orders[epoch][place]]
            replays.setdefault(record.id, record)
            index += 1
        return Plan(_seed(self._seed, cycle, rank), (), tuple(replays.values()), self._environments)

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

_BEFORE = {"window": 1, "active_skills": 0}
"""What checkpoints that do not say were made with."""


def mixed(
    learnable: Sequence[EnvironmentRecord], easy: Sequence[EnvironmentRecord], share: float
) -> list[EnvironmentRecord]:
    """Return both in order, ``share`` of every beginning of the list easy; what is left of one comes at the end."""
    first, second, result = list(learnable), list(easy), list[EnvironmentRecord]()
    while first and second:
        place = len(result)
        result.append((second if int((place + 1) * share) > int(place * share) else first).pop(0))
    return result + first + second


def _compare(mine: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    other = _BEFORE | dict(other)
    for name, value in mine.items():
        if other.get(name) != value:
            raise ResumeError(
                f"the checkpoint was written with another {name}: expected {value!r}, got {other.get(name)!r}. "
                f"Resume with the recipe of the run, or start a new one in another output_dir."
            )


def _seed(*parts: int) -> int:
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=6).digest()
    return int.from_bytes(digest, "big")
