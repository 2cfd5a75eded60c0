"""Generation of a given number of environments, in rounds that a killed run can take up again.

A round is a function of (seed, round, memory before the round): its documents, skills, exemplars and sampling seeds
follow from them. Its records and the run's progress are stored in one transaction; a run that was killed inside a
round does that round again and comes to the same set.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spade_envs.corpus import Corpus
from spade_envs.designer.attempt import Attempt, DesignPrompt
from spade_envs.designer.attempt_log import AttemptLog
from spade_envs.designer.designer import Designer
from spade_envs.designer.hints import HintWriter
from spade_envs.models.base import ChatModel, Completion, Sampling
from spade_envs.record import EnvironmentRecord

if TYPE_CHECKING:
    from spade_envs.memory import Memory


class GenerateError(RuntimeError):
    """The run cannot go on: nothing is admitted any more, or it does not fit what it is to resume."""


@dataclass(slots=True)
class GenerateSummary:
    """What a run did, earlier sittings included; ``seconds`` (by stage) are those of this sitting."""

    run: str
    count: int = 0  # records wanted
    admitted: int = 0
    attempts: int = 0
    rounds: int = 0
    causes: Counter[str] = field(default_factory=Counter)  # attempts by cause: "admitted", a probe, "duplicate", …
    prompt_tokens: int = 0
    completion_tokens: int = 0
    hint_tokens: int = 0
    without_hint: int = 0
    seconds: Counter[str] = field(default_factory=Counter)
    ids: list[str] = field(default_factory=list)  # of the records added in this sitting

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe dictionary."""
        return {**dataclasses.asdict(self), "causes": dict(self.causes), "seconds": dict(self.seconds)}


_TOTALS = ("admitted", "attempts", "prompt_tokens", "completion_tokens", "hint_tokens", "without_hint")


def generate(
    model: ChatModel,
    corpus: Corpus | None,
    designer: Designer,
    memory: Memory,
    *,
    count: int,
    seed: int = 0,
    run: str = "generate",
    round_size: int = 32,
    sampling: Sampling | None = None,
    max_attempts: int | None = None,
    patience: int = 5,
    log: str | Path | None = None,
    resume: bool = False,
    on_attempt: Callable[[Attempt], None] | None = None,
) -> GenerateSummary:
    """Add exactly ``count`` environments to ``memory``.

    Args:
        model: writes programs, and hints where programs bring none.
        corpus: grounding documents; None for designs without a document.
        designer: prompts and judges; its memory is ``memory``.
        memory: receives the records.
        count: how many environments this run is to have added in the end.
        seed: fixes documents, skills, exemplars and sampling.
        run: the run's name in the memory; a killed run is taken up by its name.
        round_size: most attempts of one round; a round sees the memory as it was before it.
        sampling: tokens and temperature, else the prompt set's; its seed is not used.
        max_attempts: stop with an error after so many replies.
        patience: stop with an error after so many rounds in a row that added nothing.
        log: JSON lines of every attempt are appended to this file.
        resume: go on with a run of this name; without it such a run is an error.
        on_attempt: called after every attempt, in order.

    Raises:
        GenerateError: if nothing is admitted any more, attempts run out, or the run to resume is another one.
        ModelError, SandboxError, StoreError, CorpusError: if the machinery fails.
    """
    if count < 1 or round_size < 1 or patience < 1:
        raise ValueError(f"count, round_size and patience must be at least 1, got {count}, {round_size}, {patience}")
    sampling = sampling or designer.prompts.designer_sampling
    settings = _settings(model, corpus, designer, seed, round_size, sampling)
    next_round, state = memory.progress(run)
    _check_resume(run, resume, next_round, state, settings)
    summary = GenerateSummary(run, count, rounds=next_round, causes=Counter(state.get("causes", {})))
    for name in _TOTALS:
        setattr(summary, name, state.get(name, 0))
    if next_round:  # what is stored counts, should the state say otherwise (see below)
        summary.admitted = len(memory.records(run=run, archived=None))
    barren: int = state.get("barren", 0)
    hints = None if designer.own_hint else HintWriter(designer.prompts, designer.sandbox, designer.validation)
    with AttemptLog(log, run, next_round) if log is not None else nullcontext() as attempt_log:
        while summary.admitted < count:
            _check_progress(summary, barren, patience, max_attempts)
            wanted = count - summary.admitted
            size = _round_size(summary, wanted, round_size, max_attempts)
            records = []
            for attempt in _round(model, corpus, designer, hints, seed, summary, size, wanted, sampling):
                if attempt.record is not None and attempt.status == "admitted":
                    records.append(attempt.record)
                if attempt_log is not None:
                    attempt_log.write(attempt)
                if on_attempt is not None:
                    on_attempt(attempt)
            with _timed(summary, "store"):
                if attempt_log is not None:
                    attempt_log.sync()
                barren = 0 if records else barren + 1
                totals = {name: getattr(summary, name) for name in _TOTALS}
                totals["admitted"] += len(records)
                new = memory.commit_round(
                    run,
                    summary.rounds,
                    records,
                    {"settings": settings, "causes": dict(summary.causes), "barren": barren, **totals},
                )
            summary.rounds += 1
            summary.admitted += new
            if new < len(records):  # another process stored the same program while this round was made
                records = memory.records(run=run, limit=new, newest_first=True, archived=None)[::-1] if new else []
            summary.ids += [record.id for record in records]
    return summary


def preview(
    corpus: Corpus | None, designer: Designer, *, seed: int = 0, round_index: int = 0, index: int = 0
) -> DesignPrompt:
    """Return the prompt of one attempt, without a model; by default that of a run's first one."""
    skills = designer.prompts.skills
    document = corpus.sample(seed, index) if corpus is not None else None
    rng = random.Random(f"{seed}/{round_index}/{index}")
    return designer.prompt(document, skills[index % len(skills)], rng)


def _round(
    model: ChatModel,
    corpus: Corpus | None,
    designer: Designer,
    hints: HintWriter | None,
    seed: int,
    summary: GenerateSummary,
    size: int,
    wanted: int,
    sampling: Sampling,
) -> Iterator[Attempt]:
    """Make the attempts of one round, in order, and count them."""
    round_index, first = summary.rounds, summary.attempts
    with _timed(summary, "prompt"):
        prompts = [
            preview(corpus, designer, seed=seed, round_index=round_index, index=first + offset)
            for offset in range(size)
        ]
    sampling = dataclasses.replace(sampling, seed=_derived(seed, round_index, "design"))
    with _timed(summary, "model"):
        completions = model.complete([prompt.messages for prompt in prompts], sampling)
    attempts: list[Attempt] = []
    admitted: list[EnvironmentRecord] = []
    for offset, (prompt, completion) in enumerate(zip(prompts, completions, strict=True)):
        attempt = _judged(designer, prompt, completion, admitted, enough=len(admitted) >= wanted)
        attempt = dataclasses.replace(
            attempt,
            index=first + offset,
            round=round_index,
            seed=sampling.seed,
            prompt_tokens=completion.prompt_tokens,
            tokens=completion.completion_tokens,
        )
        if attempt.record is not None and attempt.status == "admitted":
            record = attempt.record
            meta = {**record.meta, "seed": seed, "round": round_index, "attempt": attempt.index}
            attempt = dataclasses.replace(attempt, record=dataclasses.replace(record, meta=meta))
            admitted.append(record)
        attempts.append(attempt)
        summary.attempts += 1
        summary.causes[attempt.cause] += 1
        summary.prompt_tokens += completion.prompt_tokens
        summary.completion_tokens += completion.completion_tokens
        summary.seconds.update(attempt.seconds)
        if hints is None:
            yield attempt
    if hints is not None:
        yield from _with_hints(model, designer, hints, attempts, seed, summary)


def _judged(
    designer: Designer, prompt: DesignPrompt, completion: Completion, admitted: list[EnvironmentRecord], *, enough: bool
) -> Attempt:
    document_id = prompt.document.id if prompt.document else ""
    if completion.error:
        return Attempt(prompt.skill, "model_error", document_id, prompt.parents, reason=completion.error,
                       cause="model_error")  # fmt: skip
    if enough:
        return Attempt(prompt.skill, "surplus", document_id, prompt.parents, raw=completion.text, cause="surplus",
                       reason="the count was reached before")  # fmt: skip
    attempt = designer.admit(completion.text, prompt)
    if attempt.record is not None and (other := designer.repeats(attempt.record, admitted)):
        reason = f"repeats {other.id[:16]}, admitted in the same round"
        return dataclasses.replace(attempt, status="duplicate", cause="duplicate", reason=reason, record=None)
    return attempt


def _with_hints(
    model: ChatModel,
    designer: Designer,
    hints: HintWriter,
    attempts: list[Attempt],
    seed: int,
    summary: GenerateSummary,
) -> Iterator[Attempt]:
    """Let the model write the hints of the admitted records of a round, all at once."""
    with _timed(summary, "hint"):
        records = [attempt.record for attempt in attempts if attempt.record is not None]
        sampling = designer.prompts.hint_sampling
        sampling = dataclasses.replace(sampling, seed=_derived(seed, summary.rounds, "hint"))
        written, tokens = hints.write(model, records, sampling) if records else ([], 0)
        summary.hint_tokens += tokens
        summary.without_hint += sum(not record.hint for record in written)
    rest = iter(written)
    for attempt in attempts:
        yield attempt if attempt.record is None else dataclasses.replace(attempt, record=next(rest))


def _round_size(summary: GenerateSummary, wanted: int, round_size: int, max_attempts: int | None) -> int:
    """As many attempts as are likely to be needed; few rather than many at first, since unused replies cost money."""
    rate = (summary.admitted + 2) / (summary.attempts + 2)
    size = min(round_size, math.ceil(wanted / rate))
    return size if max_attempts is None else min(size, max_attempts - summary.attempts)


def _settings(
    model: ChatModel, corpus: Corpus | None, designer: Designer, seed: int, round_size: int, sampling: Sampling
) -> dict[str, Any]:
    """What must be the same for a resume to come to the same set."""
    return {
        "model": model.name,
        "corpus": corpus.fingerprint if corpus is not None else "",
        "prompts": designer.prompts.fingerprint,
        "seed": seed,
        "round_size": round_size,
        "max_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
    }


def _check_resume(
    run: str, resume: bool, next_round: int, state: Mapping[str, Any], settings: Mapping[str, Any]
) -> None:
    if next_round and not resume:
        raise GenerateError(f"the memory holds a run {run!r} already ({state.get('admitted', 0)} environments): "
                            f"resume it (--resume), or choose another name for the run (--run)")  # fmt: skip
    before = state.get("settings", settings)
    changed = [f"{name} was {before.get(name)!r}, is {value!r}" for name, value in settings.items()
               if before.get(name) != value]  # fmt: skip
    if changed:
        raise GenerateError(f"run {run!r} cannot be resumed with other settings: {'; '.join(changed)}. "
                            f"Use the old ones, or choose another name for the run")  # fmt: skip


def _check_progress(summary: GenerateSummary, barren: int, patience: int, max_attempts: int | None) -> None:
    reasons = ", ".join(f"{cause} {number}" for cause, number in summary.causes.most_common() if cause != "admitted")
    so_far = (
        f"{summary.admitted} of {summary.count} environments after {summary.attempts} attempts ({reasons or 'none'})"
    )
    if barren >= patience:
        raise GenerateError(f"{barren} rounds in a row added nothing; {so_far}. The log has the reason of each; "
                            f"try a stronger model, another corpus or a higher temperature")  # fmt: skip
    if max_attempts is not None and summary.attempts >= max_attempts:
        raise GenerateError(f"the bound of {max_attempts} attempts is reached; {so_far}. Resume with a higher one")


def _derived(seed: int, round_index: int, purpose: str) -> int:
    """A seed for one call of the model: 48 bits, so that it also fits where seeds are small."""
    return int.from_bytes(hashlib.blake2b(f"{seed}/{round_index}/{purpose}".encode(), digest_size=6).digest(), "big")


class _timed:  # noqa: N801  used as a statement
    """Adds the wall-clock time of a block to a stage of the summary."""

    def __init__(self, summary: GenerateSummary, stage: str) -> None:
        self._summary, self._stage = summary, stage

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._summary.seconds[self._stage] += time.perf_counter() - self._start  # type: ignore[assignment]
