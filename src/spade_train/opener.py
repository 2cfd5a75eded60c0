"""Open the programs of a cycle, with the seeds of their plays, and count those that cannot be opened."""

from __future__ import annotations

import logging
import random

from spade_envs.record import EnvironmentRecord
from spade_envs.sandbox import Program, Sandbox
from spade_envs.sandbox.types import ProgramError
from spade_train.cycle import Played
from spade_train.pool_sources.trusted import is_procedural

logger = logging.getLogger(__name__)


class Opener:
    """Opens programs; ``failed`` counts those of the running cycle that could not be opened, and were not new.

    Args:
        sandbox: runs the programs.
        plays: plain episodes of each environment.
        unknown: whether programs may be ones that nobody has validated, as in a fixed pool: then each must also start
            an episode, for one whose constructor or ``reset`` fails would leave its place in the cycle empty.
    """

    def __init__(self, sandbox: Sandbox, plays: int, *, unknown: bool) -> None:
        self._sandbox, self._plays, self._unknown = sandbox, plays, unknown
        self._told: set[str] = set()
        self.failed = 0
        self.why = ""  # of the latest one

    def begin(self) -> None:
        """Begin to count for another cycle."""
        self.failed = 0

    def open(self, record: EnvironmentRecord, rng: random.Random, *, fresh: bool) -> Played | None:
        """Return an environment ready to be played; None if it cannot be opened."""
        seeds = self._seeds(record, rng)
        program: Program | None = None
        try:
            program = self._sandbox.open(record.source, allow=record.allow)
            if self._unknown:
                session = program.session()
                session.reset(seeds[0])
                session.close()
        except ProgramError as error:
            if program is not None:
                program.close()
            self._note(record, error, fresh=fresh)
            return None
        return Played(record, program, seeds, fresh)

    def _seeds(self, record: EnvironmentRecord, rng: random.Random) -> list[int]:
        """Return the seed of each play: different ones of an environment, the same of a question."""
        if is_procedural(record):
            return [rng.randrange(2**31)] * self._plays
        return [rng.randrange(2**31) for _ in range(self._plays)]

    def _note(self, record: EnvironmentRecord, error: ProgramError, *, fresh: bool) -> None:
        self.failed += not fresh
        self.why = f"{record.name} ({record.id[:12]}): {error.kind}: {error}"
        if record.id not in self._told:
            self._told.add(record.id)
            logger.warning("a program cannot be opened and is left out: %s", self.why)
