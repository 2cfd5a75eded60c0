"""What each cycle works on: documents, skills, environments to replay, seeds.

Everything follows from (seed, cycle, rank) and from what the memory holds before the cycle, so a resumed run works
on the same as one that was never stopped. How far a run has come in its corpus or pool is part of a checkpoint, so
that it goes on there with another number of ranks too.
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
from spade_train.pool_sources.trusted import is_procedural

logger = logging.getLogger(__name__)

_LEARNABLE = (0.1, 0.9)
_ROUNDS = 4  # rounds of a pool whose orders are kept


class CorpusLike(Protocol):
    """What a curriculum needs of :class:`spade_envs.corpus.Corpus`."""

    name: str
    fingerprint: str

    def sample(self, seed: int, index: int) -> Document:
        """Return the ``index``-th document of a seeded order."""
        ...


class ResumeError(RuntimeError):
    """A checkpoint does not belong to the run that would resume from it."""


@dataclass(slots=True)
class Position:
    """How much of an endless order all ranks took before a turn, from which on equally many take equally much."""

    turn: int = 0
    taken: int = 0

    def first(self, turn: int, rank: int, world: int, each: int) -> int:
        """Return the index of the first of the ``each`` items that ``rank`` of ``world`` takes in ``turn``."""
        return self.taken + ((turn - self.turn) * world + rank) * each

    def to_dict(self, turn: int, world: int, each: int) -> dict[str, int]:
        """Return the position before ``turn``, for :meth:`load`."""
        return {"turn": turn, "taken": self.first(turn, 0, world, each)}

    def load(self, values: Mapping[str, Any]) -> None:
        """Go on from what :meth:`to_dict` returned; checkpoints that say nothing are of equally many ranks."""
        self.turn, self.taken = int(values.get("turn", 0)), int(values.get("taken", 0))


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
        self._position = Position()  # in the corpus, by windows

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
            first = self._position.first(window, rank, world, config.documents)
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

    def state_dict(self, cycle: int = 0, world: int = 1) -> dict[str, Any]:
        """Return the position before ``cycle``, which ``world`` ranks came to, and what must be equal at a resume."""
        begun = -(-cycle // self._config.window)
        return self._fixed() | {"position": self._position.to_dict(begun, world, self._config.documents)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Check a checkpoint's state against this run and go on at its position.

        Raises:
            ResumeError: if the corpus, the skills or the seed changed.
        """
        _compare(self._fixed(), state)
        self._position.load(state.get("position", {}))

    def _fixed(self) -> dict[str, Any]:
        config = self._config
        state = {"seed": config.seed, "corpus": self._corpus.fingerprint, "skills": list(self._skills)}
        return state | {"window": config.window, "active_skills": config.active_skills}


class PoolCurriculum:
    """A fixed pool of environments, played by the agent alone in a seeded order, each once before any comes again.

    A cycle plays no environment twice on one rank: where it reaches into the next round of the pool, those that it
    has already are passed over for the ones that follow. A procedural task may come again, for it has another question
    then. The places of those that cannot be opened go to others: the candidates of a plan after the first
    ``environments`` are all others of the pool, beginning with those that this rank plays in the next cycle.

    Args:
        pool: the environments.
        environments: how many of them one cycle plays on one rank; all of a pool that has fewer and no procedural task.
        seed: fixes the order.
    """

    def __init__(self, pool: Sequence[EnvironmentRecord], environments: int, seed: int) -> None:
        if not pool:
            raise ValueError("the pool holds no environment")
        self._pool, self._seed = list({record.id: record for record in pool}.values()), seed
        endless = any(is_procedural(record) for record in self._pool)
        self._environments = environments if endless else min(environments, len(self._pool))
        self._position = Position()  # in the endless order, by cycles
        self._orders: dict[int, list[int]] = {}  # of the rounds of the pool that were needed last
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
        replays: list[EnvironmentRecord] = []
        known: set[str] = set()
        index = self._position.first(cycle, rank, world, self._environments)
        while len(replays) < self._environments:
            record = self._at(index)
            if record.id not in known or is_procedural(record):
                replays.append(record)
            known.add(record.id)
            index += 1
        index = self._position.first(cycle + 1, rank, world, self._environments)
        while len(known) < len(self._pool):
            record = self._at(index)
            if record.id not in known:
                replays.append(record)
            known.add(record.id)
            index += 1
        return Plan(_seed(self._seed, cycle, rank), (), tuple(replays), self._environments)

    def _at(self, index: int) -> EnvironmentRecord:
        """Return the ``index``-th environment of the endless order."""
        epoch, place = divmod(index, len(self._pool))
        if epoch not in self._orders:
            if len(self._orders) > _ROUNDS:
                self._orders.clear()
            self._orders[epoch] = list(range(len(self._pool)))
            random.Random(_seed(self._seed, epoch)).shuffle(self._orders[epoch])
        return self._pool[self._orders[epoch][place]]

    def state_dict(self, cycle: int = 0, world: int = 1) -> dict[str, Any]:
        """Return the position before ``cycle``, which ``world`` ranks came to, and what must be equal at a resume."""
        return self._fixed() | {"position": self._position.to_dict(cycle, world, self._environments)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Check a checkpoint's state against this run and go on at its position.

        Raises:
            ResumeError: if the pool or the seed changed.
        """
        _compare(self._fixed(), state)
        self._position.load(state.get("position", {}))

    def _fixed(self) -> dict[str, Any]:
        ids = "".join(record.id for record in self._pool)
        return {"seed": self._seed, "pool": hashlib.sha256(ids.encode()).hexdigest()}


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
