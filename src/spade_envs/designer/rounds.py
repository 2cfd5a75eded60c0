"""One round of generation: ask, judge, repair, write hints; a function of seed, round and the memory before it."""

from __future__ import annotations

import dataclasses
import hashlib
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from spade_envs.contamination import CleanCorpus
from spade_envs.corpus import Corpus
from spade_envs.designer.attempt import Attempt, DesignPrompt
from spade_envs.designer.designer import Designer
from spade_envs.designer.hints import HintWriter
from spade_envs.designer.repair import repair_messages, repairable
from spade_envs.designer.summary import GenerateSummary
from spade_envs.models.base import ChatModel, Completion, Sampling
from spade_envs.record import EnvironmentRecord


@dataclass(frozen=True, slots=True)
class Round:
    """What the attempts of one round are made with."""

    model: ChatModel
    corpus: Corpus | CleanCorpus | None
    designer: Designer
    sampling: Sampling
    seed: int  # of the run
    index: int
    repairs: int = 0  # turns in which a refused program goes back
    hints: HintWriter | None = None  # None: programs bring their own
    hint_model: ChatModel | None = None  # None: the same model

    def attempts(self, summary: GenerateSummary, size: int, wanted: int) -> Iterator[Attempt]:
        """Make ``size`` attempts, in order, and count them; those after ``wanted`` admitted ones are not looked at."""
        first = summary.attempts
        causes = dict(summary.first_causes)
        with summary.timed("prompt"):
            prompts = [
                preview(
                    self.corpus, self.designer, seed=self.seed, round_index=self.index, index=first + i, causes=causes
                )
                for i in range(size)
            ]
        sampling = self._sampling("design")
        with summary.timed("model"):
            completions = self.model.complete([prompt.messages for prompt in prompts], sampling)
        attempts: list[Attempt] = []
        admitted: list[EnvironmentRecord] = []
        self.designer.expect(completion.text for completion in completions)
        for offset, (prompt, completion) in enumerate(zip(prompts, completions, strict=True)):
            attempt = self._judged(prompt, completion, admitted, wanted)
            attempts.append(dataclasses.replace(attempt, index=first + offset, round=self.index, seed=sampling.seed))
            if not self.repairs and self.hints is None:
                yield self._settled(attempts[-1], summary)
        if not self.repairs and self.hints is None:
            return
        for turn in range(self.repairs):
            self._repair(prompts, attempts, admitted, wanted, turn, summary)
        for attempt in self._with_hints(attempts, summary):
            yield self._settled(attempt, summary)

    def _sampling(self, purpose: str) -> Sampling:
        return dataclasses.replace(self.sampling, seed=_derived(self.seed, self.index, purpose))

    def _judged(
        self, prompt: DesignPrompt, completion: Completion, admitted: list[EnvironmentRecord], wanted: int
    ) -> Attempt:
        """Judge one reply and add its record to ``admitted``."""
        attempt = Attempt(
            prompt.skill, "model_error", prompt.document.id if prompt.document else "", prompt.parents,
            raw=completion.text, reason=completion.error, cause="model_error",
        )  # fmt: skip
        if not completion.error and len(admitted) >= wanted:
            reason = "the count was reached before"
            attempt = dataclasses.replace(attempt, status="surplus", cause="surplus", reason=reason)
        elif not completion.error:
            attempt = self.designer.admit(completion.text, prompt)
        if attempt.record is not None and (other := self.designer.repeats(attempt.record, admitted)):
            reason = f"repeats {other.id[:16]}, admitted in the same round"
            attempt = dataclasses.replace(attempt, status="duplicate", cause="duplicate", reason=reason, record=None)
        if attempt.record is not None:
            admitted.append(attempt.record)
        return dataclasses.replace(
            attempt,
            finish=completion.finish_reason,
            prompt_tokens=completion.prompt_tokens,
            tokens=completion.completion_tokens,
        )

    def _repair(
        self,
        prompts: list[DesignPrompt],
        attempts: list[Attempt],
        admitted: list[EnvironmentRecord],
        wanted: int,
        turn: int,
        summary: GenerateSummary,
    ) -> None:
        """Send the refused programs back, all at once, and judge what comes; nothing if the count is reached."""
        open_ = [place for place, attempt in enumerate(attempts) if repairable(attempt)]
        if len(admitted) >= wanted or not open_:
            return
        with summary.timed("repair"):
            completions = self.model.complete(
                [repair_messages(self.designer.prompts, prompts[place], attempts[place]) for place in open_],
                self._sampling(f"repair{turn}"),
            )
        self.designer.expect(completion.text for completion in completions)
        for place, completion in zip(open_, completions, strict=True):
            before = attempts[place]
            after = self._judged(prompts[place], completion, admitted, wanted)
            if after.status in ("model_error", "surplus"):
                kept = before  # the verdict on the reply before stands
            else:
                earlier = (*before.earlier, dataclasses.replace(before, earlier=()))
                kept = dataclasses.replace(
                    after, earlier=earlier, index=before.index, round=before.round, seed=before.seed
                )
            attempts[place] = dataclasses.replace(
                kept,
                prompt_tokens=before.prompt_tokens + after.prompt_tokens,
                tokens=before.tokens + after.tokens,
                seconds={
                    stage: before.seconds.get(stage, 0.0) + after.seconds.get(stage, 0.0)
                    for stage in (*before.seconds, *after.seconds)
                },
            )

    def _with_hints(self, attempts: list[Attempt], summary: GenerateSummary) -> list[Attempt]:
        """Let a model write the hints of the admitted records, all at once."""
        records = [attempt.record for attempt in attempts if attempt.record is not None]
        if self.hints is None or not records:
            return attempts
        with summary.timed("hint"):
            sampling = self.designer.prompts.hint_sampling
            sampling = dataclasses.replace(sampling, seed=_derived(self.seed, self.index, "hint"))
            written, tokens = self.hints.write(self.hint_model or self.model, records, sampling)
        summary.hint_tokens += tokens
        summary.without_hint += sum(not record.hint for record in written)
        rest = iter(written)
        return [
            attempt if attempt.record is None else dataclasses.replace(attempt, record=next(rest))
            for attempt in attempts
        ]

    def _settled(self, attempt: Attempt, summary: GenerateSummary) -> Attempt:
        """Count an attempt that does not change any more, and write its place into its record."""
        summary.count_attempt(attempt)
        if attempt.record is None:
            return attempt
        place = {"seed": self.seed, "round": self.index, "attempt": attempt.index, "repairs": len(attempt.earlier)}
        record = dataclasses.replace(attempt.record, meta={**attempt.record.meta, **place})
        return dataclasses.replace(attempt, record=record)


def preview(
    corpus: Corpus | CleanCorpus | None,
    designer: Designer,
    *,
    seed: int = 0,
    round_index: int = 0,
    index: int = 0,
    causes: Mapping[str, int] | None = None,
) -> DesignPrompt:
    """Return the prompt of one attempt, without a model; by default that of a run's first one."""
    skills = designer.prompts.skills
    document = corpus.sample(seed, index) if corpus is not None else None
    rng = random.Random(f"{seed}/{round_index}/{index}")
    return designer.prompt(document, skills[index % len(skills)], rng, causes)


def _derived(seed: int, round_index: int, purpose: str) -> int:
    """A seed for one call of the model: 48 bits, so that it also fits where seeds are small."""
    return int.from_bytes(hashlib.blake2b(f"{seed}/{round_index}/{purpose}".encode(), digest_size=6).digest(), "big")
