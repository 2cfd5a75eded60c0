"""One cycle of self-play: design, validate, play with and without the hint, turn the roles into rows.

Nothing here knows a trainer. A :class:`~spade_train.cycle.Sampler` turns prompt ids into sampled ids; the designer,
the sandbox and :mod:`spade_envs.play` do the rest. Sampled ids are only ever appended to rows, never encoded again.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from spade_envs.laps import Laps
from spade_envs.play import PlayConfig, PlayTask, StopReason, start_episodes
from spade_envs.pools import PoolError
from spade_envs.record import EnvironmentRecord
from spade_train.converse import converse
from spade_train.cycle import Cycle, CycleConfig, DesignerLike, Plan, Played, Sampler, Written
from spade_train.designs import DesignStage
from spade_train.engine import engine_of
from spade_train.hinting import HintStage
from spade_train.opener import Opener
from spade_train.pool_sources.trusted import is_procedural
from spade_train.rows import Row
from spade_train.tokens import ChatTokens
from spade_train.window import Window

if TYPE_CHECKING:
    from spade_envs.designer.hints import HintWriter
    from spade_envs.models.base import ChatModel
    from spade_envs.sandbox import Sandbox

logger = logging.getLogger(__name__)


class Rollout:
    """Runs cycles.

    Args:
        tokens: renders conversations to ids.
        designer: asks for and admits environments; None in fixed-pool training.
        sandbox: runs the programs.
        play: budgets, prompts and return mode of the episodes.
        config: sizes of a cycle.
        hints: asks for hints and judges them; None where programs carry their own hints.
        author: another model that writes the programs; None where they are sampled from the policy.
        author_temperature: of that model.
    """

    def __init__(
        self,
        tokens: ChatTokens,
        designer: DesignerLike | None,
        sandbox: Sandbox,
        play: PlayConfig,
        config: CycleConfig,
        hints: HintWriter | None = None,
        *,
        author: ChatModel | None = None,
        author_temperature: float = 0.6,
    ) -> None:
        self.tokens, self.sandbox, self.play, self.config = tokens, sandbox, play, config
        self.designs = DesignStage(tokens, designer, config, author, author_temperature) if designer else None
        self.hints = HintStage(tokens, sandbox, config, hints)
        self.window = Window()
        self._opener = Opener(sandbox, config.plays, unknown=designer is None)

    def run(self, plan: Plan, sampler: Sampler, designer_sampler: Sampler | None = None) -> Cycle:
        """Run one cycle. The same plan, policy, window and sampler state give the same rows.

        Args:
            plan: what to work on.
            sampler: samples from the policy.
            designer_sampler: samples the programs, where that is not the policy as it is now.
        """
        rng = random.Random(plan.seed)
        lap = Laps()
        window, pay = self.window, self.config.pay

        paid = window.settle(pay, ended=True) if plan.phase == 0 and self.config.window > 1 else []
        due = [one.row for one in paid]
        written: list[Written] = []
        if self.designs is not None and plan.phase == 0:
            asked = self.designs.ask(plan.designs, rng)
            replies = self.designs.write(asked, designer_sampler or sampler, plan.seed) if asked else []
            lap("design")
            written = self.designs.admit(asked, replies)
        else:
            lap("design")
        lap("admit")
        if plan.phase == 0:
            window.begin(written)
        self._opener.begin()
        played = self._open(written, plan, rng)
        try:
            rows = self._play(played, plan, sampler)
        finally:
            for one in played:
                one.program.close()
        lap("play")
        window.add(played)
        hints = self.hints.pay(pay.penalties.invalid) if plan.phase == 0 else []
        if self.config.window == 1 or (plan.last and plan.phase > 0):
            now = window.settle(pay, ended=False)
            paid = paid + now
            due += [one.row for one in now]
        elif plan.last and window.pending:
            logger.warning(
                "%d programs of the run's last rollout wait for the rest of their window: no update follows, so they "
                "are trained only if the run is resumed with more steps",
                len(window.pending),
            )
        batch = due if "designer" in self.config.trained else []
        batch = batch + [one.row for one in hints] if "hint" in self.config.trained else batch
        batch = batch + rows if "agent" in self.config.trained else batch
        figures = window.figures()
        if plan.replays:
            figures["replay/unopened"] = float(self._opener.failed)
        return Cycle(self._fill(batch), written, played, lap.seconds, paid, hints, figures)

    def _open(self, written: Sequence[Written], plan: Plan, rng: random.Random) -> list[Played]:
        """Open the programs to play: each admitted one once, those of the window, then replays in the places left."""
        by_id: dict[str, Played | None] = {}
        fresh: list[EnvironmentRecord] = []
        for one in written:
            record = one.attempt.record
            if record is None or one.attempt.status != "admitted" or self.designs is None:
                continue
            if (same := self.designs.designer.repeats(record, fresh)) is None:
                same = record
                fresh.append(record)
                by_id[record.id] = self._opener.open(record, rng, fresh=True)
            one.played = by_id[same.id]
            one.environment = same.id if one.played is not None else ""
        if plan.phase > 0:
            for record, new in self.window.carried():
                by_id[record.id] = self._opener.open(record, rng, fresh=new)
        played = [one for one in by_id.values() if one is not None]
        for record in plan.replays:
            if len(played) >= self.config.places:
                break
            if record.id in by_id and not is_procedural(record):
                continue
            by_id[record.id] = replay = self._opener.open(record, rng, fresh=False)
            if replay is not None:
                played.append(replay)
        if self.designs is None and plan.replays and not played:
            raise PoolError(f"no environment of the pool can be opened; the last one: {self._opener.why}")
        return played

    def _play(self, played: Sequence[Played], plan: Plan, sampler: Sampler) -> list[Row]:
        """Play everything, new environments and those of a pool hinted too; return the rows of plain episodes."""
        tasks = [PlayTask(one.program, seed, None, one.record.id) for one in played for seed in one.seeds]
        owners = [one for one in played for _ in one.seeds]
        plain = len(tasks)
        if plan.phase == 0:
            measured = [one for one in played if one.fresh or self.designs is None]
            for one, hints in self.hints.hints(measured, sampler):
                tasks += [PlayTask(one.program, seed, hint, one.record.id) for seed, hint in zip(one.seeds, hints)]
                owners += [one] * len(hints)
        episodes = start_episodes(self.sandbox, tasks, self.play)
        rows = [
            Row("agent", owner.group, self.tokens.prompt(e.messages) if e.stop is None else [self.tokens.eos])
            for owner, e in zip(owners, episodes, strict=True)
        ]
        with engine_of(sampler) as engine:
            converse(
                list(zip(episodes, rows, strict=True)), engine, self.tokens, self.sandbox, self.config.context_tokens
            )
        for index, (owner, episode, row) in enumerate(zip(owners, episodes, rows, strict=True)):
            (owner.plain if index < plain else owner.hinted).append(episode)
            row.reward = None if episode.stop is StopReason.PROGRAM_ERROR else episode.return_
            row.episode = episode
        return [row for row in rows[:plain] if row.completion_ids]

    def _fill(self, rows: list[Row]) -> list[Row]:
        """Bring the rows to the fixed number of slots."""
        if len(rows) > self.config.slots:
            raise ValueError(f"a cycle made {len(rows)} rows for {self.config.slots} slots")
        scored = any(row.scored for row in rows)
        for row in rows:
            if not row.completion_ids:
                row.given([self.tokens.eos])
        spare = self.config.slots - len(rows)
        return rows + [Row.padding(self.tokens.eos, scored=scored) for _ in range(spare)]
