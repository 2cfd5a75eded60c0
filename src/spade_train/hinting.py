"""Hints for the new environments: their own, or written by the policy and paid by what they gain."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from spade_envs.batching import own_hints
from spade_envs.play import StopReason
from spade_train.cycle import CycleConfig, Hinted, Played, Sampler
from spade_train.rows import Row
from spade_train.tokens import ChatTokens

if TYPE_CHECKING:
    from spade_envs.designer.hints import HintWriter
    from spade_envs.sandbox import Sandbox


class HintStage:
    """Gives each seed of a new environment its hint.

    Args:
        tokens: renders conversations to ids.
        sandbox: runs programs that carry their own hints.
        config: sizes of a cycle.
        writer: asks for hints and judges them; None where programs carry their own.
    """

    def __init__(self, tokens: ChatTokens, sandbox: Sandbox, config: CycleConfig, writer: HintWriter | None) -> None:
        self._tokens, self._sandbox, self._config, self._writer = tokens, sandbox, config, writer
        self.written: list[Hinted] = []  # of the latest cycle

    def hints(self, played: Sequence[Played], sampler: Sampler) -> list[tuple[Played, list[str]]]:
        """Return the hint of each seed for those environments that have one."""
        self.written = []
        if not self._config.hinted:
            return []
        if self._writer is not None:
            return self._write(self._writer, played, sampler)
        said = iter(own_hints(self._sandbox, [(one.program, seed) for one in played for seed in one.seeds]))
        own = [(one, [next(said) or one.record.hint for _ in one.seeds]) for one in played]
        return [(one, hints) for one, hints in own if all(hints)]

    def _write(self, writer: HintWriter, played: Sequence[Played], sampler: Sampler) -> list[tuple[Played, list[str]]]:
        """Let the policy write hints. One that gives the answer away is dropped; without any, so are hinted plays.

        None is written for a program that is too long to be shown beside a hint.
        """
        each, room = self._config.hints, self._config.context_tokens - self._config.hint_tokens
        asked = [(one, self._tokens.prompt(writer.messages(one.record), "hint")) for one in played]
        played = [one for one, prompt in asked if len(prompt) <= room]
        prompts = [prompt for _, prompt in asked if len(prompt) <= room for _ in range(each)]
        if not sampler.busy(len(prompts)):
            return []
        # Rows that are trained are sampled as the update scores them: at the temperature of the trainer.
        temperature = None if "hint" in self._config.trained else self._config.hint_temperature
        samples = sampler.sample(prompts, self._config.hint_tokens, temperature)
        result = []
        for place, one in enumerate(played):
            records = []
            written = []
            for index in range(place * each, (place + 1) * each):
                row = Row("hint", one.record.id if each > 1 else one.record.skill, prompts[index])
                row.sampled(samples[index].ids, samples[index].logprobs)
                record = writer.judged(one.record, self._tokens.decode(samples[index].ids, "hint"))
                reason = "" if record.hint else str(record.meta.get("hint_refused", ""))
                written.append(Hinted(row, one, reason=reason))
                records.append(record)
            self.written += written
            good = [index for index, record in enumerate(records) if record.hint]
            one.record = records[good[0] if good else 0]
            if good:
                used = [good[seed * len(good) // len(one.seeds)] for seed in range(len(one.seeds))]
                for seed, index in enumerate(used):
                    written[index].seeds.append(seed)
                result.append((one, [records[index].hint for index in used]))
        return result

    def pay(self, invalid: float) -> list[Hinted]:
        """Pay the hints of the latest cycle and return them.

        A hint earns the regret of the plays that it was given to: their mean return minus the mean plain return on
        the same seeds. A refused hint earns ``invalid``; one of a program that failed in play nothing (None).
        """
        for one in self.written:
            episodes = [(one.played.hinted[seed], one.played.plain[seed]) for seed in one.seeds]
            if not episodes:
                one.row.reward = invalid
            elif any(episode.stop is StopReason.PROGRAM_ERROR for pair in episodes for episode in pair):
                one.row.reward = None
            else:
                one.row.reward = fmean(hinted.return_ for hinted, _ in episodes) - fmean(
                    plain.return_ for _, plain in episodes
                )
        return self.written
