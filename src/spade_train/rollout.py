"""One cycle of self-play: design, validate, play with and without the hint, turn both roles into rows.

Nothing here knows a trainer. A :class:`~spade_train.cycle.Sampler` turns prompt ids into sampled ids; the designer,
the sandbox and :mod:`spade_envs.play` do the rest. Sampled ids are only ever appended to rows, never encoded again.
"""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from spade_envs.batching import own_hints
from spade_envs.laps import Laps
from spade_envs.play import PlayConfig, PlayTask, StopReason, start_episodes
from spade_envs.record import EnvironmentRecord
from spade_envs.sandbox.types import ProgramError
from spade_train.converse import converse
from spade_train.cycle import Cycle, CycleConfig, Design, DesignerLike, Plan, Played, Sample, Sampler, Written
from spade_train.engine import engine_of
from spade_train.rewards import DesignOutcome, designer_reward
from spade_train.rows import Row
from spade_train.tokens import ChatTokens

if TYPE_CHECKING:
    from spade_envs.designer import DesignPrompt
    from spade_envs.designer.hints import HintWriter
    from spade_envs.sandbox import Sandbox

_TIMEOUTS = ("timeout:", "quarantined:")  # as errors of episodes begin
_SHORT = 200  # characters of a document that is not cut any more
_TOO_MUCH = "resources"  # the probe that refuses programs that run too long


class Rollout:
    """Runs cycles.

    Args:
        tokens: renders conversations to ids.
        designer: asks for and admits environments; None in fixed-pool training.
        sandbox: runs the programs.
        play: budgets, prompts and return mode of the episodes.
        config: sizes of a cycle.
        hints: asks for hints and judges them; None where programs carry their own hints.
    """

    def __init__(
        self,
        tokens: ChatTokens,
        designer: DesignerLike | None,
        sandbox: Sandbox,
        play: PlayConfig,
        config: CycleConfig,
        hints: HintWriter | None = None,
    ) -> None:
        self.tokens, self.designer, self.sandbox = tokens, designer, sandbox
        self.play, self.config, self.hints = play, config, hints

    def run(self, plan: Plan, sampler: Sampler) -> Cycle:
        """Run one cycle. The same plan, policy and sampler state give the same rows."""
        rng = random.Random(plan.seed)
        lap = Laps()

        asked = self._ask(plan.designs, rng)
        samples = sampler.sample([ids for _, ids in asked], self.config.design_tokens) if plan.designs else []
        lap("design")
        written = [self._admit(prompt, ids, sample) for (prompt, ids), sample in zip(asked, samples, strict=True)]
        lap("admit")
        played = self._open(written, plan, rng)
        try:
            rows = self._play(played, sampler)
        finally:
            for one in played:
                one.program.close()
        lap("play")
        self._pay(written)
        return Cycle(self._fill([one.row for one in written] + rows), written, played, lap.seconds)

    def _ask(self, designs: Sequence[Design], rng: random.Random) -> list[tuple[DesignPrompt, list[int]]]:
        """Return the prompts: all programs for one document answer the same one, so that they can be compared."""
        if self.designer is None:
            return []
        asked = [self._ask_one(self.designer, design, rng) for design in designs]
        return [pair for pair in asked for _ in range(self.config.designs)]

    def _ask_one(self, designer: DesignerLike, design: Design, rng: random.Random) -> tuple[DesignPrompt, list[int]]:
        """Return the prompt, with as much of the document as leaves room for the program."""
        room = self.config.context_tokens - self.config.design_tokens
        document = design.document
        while True:
            prompt = designer.prompt(document, design.skill, rng)
            ids = self.tokens.prompt(prompt.messages, "designer")
            if len(ids) <= room:
                return prompt, ids
            if len(document.text) < _SHORT:
                raise ValueError(
                    f"the designer's prompt has {len(ids)} tokens even with a short document, and {room} fit beside a "
                    f"program of {self.config.design_tokens}: raise context_tokens, or lower design_tokens or the "
                    f"number of exemplars of the prompt set"
                )
            document = dataclasses.replace(document, text=document.text[: len(document.text) // 2])

    def _admit(self, prompt: DesignPrompt, ids: list[int], sample: Sample) -> Written:
        assert self.designer is not None
        row = Row("designer", prompt.skill, ids)
        row.sampled(sample.ids, sample.logprobs)
        return Written(row, self.designer.admit(self.tokens.decode(sample.ids, "designer"), prompt))

    def _open(self, written: Sequence[Written], plan: Plan, rng: random.Random) -> list[Played]:
        """Open the programs to play: each admitted one once, then replays in the places that are left."""
        by_id: dict[str, Played | None] = {}
        fresh: list[EnvironmentRecord] = []
        for one in written:
            record = one.attempt.record
            if record is None or one.attempt.status != "admitted" or self.designer is None:
                continue
            if (same := self.designer.repeats(record, fresh)) is None:
                same = record
                fresh.append(record)
                by_id[record.id] = self._opened(record, rng, fresh=True)
            one.played = by_id[same.id]
        played = [one for one in by_id.values() if one is not None]
        room = self.config.places - len(played)
        for record in plan.replays:
            if room <= 0:
                break
            if record.id not in by_id and (replay := self._opened(record, rng, fresh=False)):
                by_id[record.id] = replay
                played.append(replay)
                room -= 1
        return played

    def _opened(self, record: EnvironmentRecord, rng: random.Random, *, fresh: bool) -> Played | None:
        seeds = [rng.randrange(2**31) for _ in range(self.config.plays)]
        try:
            return Played(record, self.sandbox.open(record.source, allow=record.allow), seeds, fresh)
        except ProgramError:
            return None

    def _play(self, played: Sequence[Played], sampler: Sampler) -> list[Row]:
        """Play everything, plain and hinted, in one lock step; return the rows of the plain episodes."""
        tasks = [PlayTask(one.program, seed, None, one.record.id) for one in played for seed in one.seeds]
        owners = [one for one in played for _ in one.seeds]
        plain = len(tasks)
        for one, hints in self._hints(played, sampler):
            tasks += [PlayTask(one.program, seed, hint, one.record.id) for seed, hint in zip(one.seeds, hints)]
            owners += [one] * len(hints)
        episodes = start_episodes(self.sandbox, tasks, self.play)
        rows = [
            Row("agent", e.task.key, self.tokens.prompt(e.messages) if e.stop is None else [self.tokens.eos])
            for e in episodes
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

    def _hints(self, played: Sequence[Played], sampler: Sampler) -> list[tuple[Played, list[str]]]:
        """Return the hint of each seed for the new environments that have one."""
        if not self.config.hinted:
            return []
        fresh = [one for one in played if one.fresh]
        if self.hints is not None:
            return [(one, [one.record.hint] * len(one.seeds)) for one in self._write_hints(fresh, sampler)]
        said = iter(own_hints(self.sandbox, [(one.program, seed) for one in fresh for seed in one.seeds]))
        own = [(one, [next(said) or "" for _ in one.seeds]) for one in fresh]
        return [(one, hints) for one, hints in own if all(hints)]

    def _write_hints(self, fresh: Sequence[Played], sampler: Sampler) -> list[Played]:
        """Let the policy write hints; a hint that gives the answer away is dropped, and with it the hinted plays."""
        assert self.hints is not None
        prompts = [self.tokens.prompt(self.hints.messages(one.record), "hint") for one in fresh]
        if not sampler.busy(len(prompts)):
            return []
        samples = sampler.sample(prompts, self.config.hint_tokens, self.config.hint_temperature)
        for one, sample in zip(fresh, samples, strict=True):
            one.record = self.hints.judged(one.record, self.tokens.decode(sample.ids, "hint"))
        return [one for one in fresh if one.record.hint]

    def _pay(self, written: Sequence[Written]) -> None:
        copies = Counter(id(one.played) for one in written if one.played is not None)
        for one in written:
            if one.played is None:
                status = one.attempt.status
                one.outcome = DesignOutcome(
                    "refused" if status == "admitted" else str(status), timed_out=one.attempt.cause == _TOO_MUCH
                )
            else:
                plain, hinted = one.played.returns(hinted=False), one.played.returns(hinted=True)
                if not one.played.hinted:
                    hinted = plain  # no hint: nothing that a hint could have gained
                errors = one.played.errors
                one.outcome = DesignOutcome(
                    "failed" if errors else "admitted",
                    plain,
                    hinted,
                    timed_out=any(error.startswith(_TIMEOUTS) for error in errors),
                    copies=copies[id(one.played)],
                )
            one.row.reward = designer_reward(self.config.reward, one.outcome, self.config.penalties)

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
