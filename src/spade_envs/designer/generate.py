"""Generation of a given number of environments, in rounds that a killed run can take up again.

A round is a function of (seed, round, memory before the round): its documents, skills, exemplars and sampling seeds
follow from them. Its records and the run's progress are stored in one transaction; a run that was killed inside a
round does that round again and comes to the same set.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spade_envs.contamination import CleanCorpus
from spade_envs.corpus import Corpus
from spade_envs.designer.attempt import Attempt
from spade_envs.designer.attempt_log import AttemptLog
from spade_envs.designer.designer import Designer
from spade_envs.designer.hints import HintWriter
from spade_envs.designer.rounds import Round, preview
from spade_envs.designer.summary import GenerateSummary
from spade_envs.memory.settings import changed_settings
from spade_envs.models.base import ChatModel, Sampling

if TYPE_CHECKING:
    from spade_envs.memory import Memory

__all__ = ["GenerateError", "GenerateSummary", "generate", "preview"]


class GenerateError(RuntimeError):
    """The run cannot go on: nothing is admitted any more, or it does not fit what it is to resume."""


def generate(
    model: ChatModel,
    corpus: Corpus | CleanCorpus | None,
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
    repairs: int = 0,
    hint_model: ChatModel | None = None,
    log: str | Path | None = None,
    resume: bool = False,
    on_attempt: Callable[[Attempt], None] | None = None,
    on_round: Callable[[GenerateSummary], None] | None = None,
    spent: Callable[[], float] | None = None,
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
        repairs: most turns in which a refused program goes back to the model with the reasons.
        hint_model: writes the hints instead of ``model``.
        log: JSON lines of every attempt are appended to this file.
        resume: go on with a run of this name; without it such a run is an error.
        on_attempt: called after every attempt, in order.
        on_round: called after every round, when it is stored.
        spent: says what the models have cost since the call began.

    Raises:
        GenerateError: if nothing is admitted any more, attempts run out, or the run to resume is another one.
        ModelError, SandboxError, StoreError, CorpusError: if the machinery fails.
    """
    if count < 1 or round_size < 1 or patience < 1:
        raise ValueError(f"count, round_size and patience must be at least 1, got {count}, {round_size}, {patience}")
    if repairs < 0:
        raise ValueError(f"repairs must be at least 0, got {repairs}")
    sampling = sampling or designer.prompts.designer_sampling
    settings = {
        **_settings(model, corpus, designer, seed, round_size, sampling),
        "repairs": repairs,
        "hint_model": hint_model.name if hint_model is not None else "",
    }
    next_round, state = memory.progress(run)
    _check_resume(run, resume, next_round, state, settings)
    summary = GenerateSummary(run, count, rounds=next_round)
    summary.restore(state)
    if next_round:  # what is stored counts, should the state say otherwise (see below)
        summary.admitted = len(memory.records(run=run, archived=None))
    barren: int = state.get("barren", 0)
    cost_before = summary.cost
    hints = None if designer.own_hint else HintWriter(designer.prompts, designer.sandbox, designer.validation)
    with AttemptLog(log, run, next_round) if log is not None else nullcontext() as attempt_log:
        while summary.admitted < count:
            _check_progress(summary, barren, patience, max_attempts)
            wanted = count - summary.admitted
            size = _round_size(summary, wanted, round_size, max_attempts)
            records = []
            work = Round(
                model, corpus, designer, sampling, seed, summary.rounds, repairs=repairs, hints=hints,
                hint_model=hint_model,
            )  # fmt: skip
            for attempt in work.attempts(summary, size, wanted):
                if attempt.record is not None and attempt.status == "admitted":
                    records.append(attempt.record)
                if attempt_log is not None:
                    attempt_log.write(attempt)
                if on_attempt is not None:
                    on_attempt(attempt)
            summary.cost = cost_before + (spent() if spent is not None else 0.0)
            with summary.timed("store"):
                if attempt_log is not None:
                    attempt_log.sync()
                barren = 0 if records else barren + 1
                state = {**summary.state(), "admitted": summary.admitted + len(records)}
                new = memory.commit_round(
                    run, summary.rounds, records, {"settings": settings, "barren": barren, **state}
                )
            summary.rounds += 1
            summary.admitted += new
            if new < len(records):  # another process stored the same program while this round was made
                records = memory.records(run=run, limit=new, newest_first=True, archived=None)[::-1] if new else []
            summary.ids += [record.id for record in records]
            if on_round is not None:
                on_round(summary)
    return summary


def _round_size(summary: GenerateSummary, wanted: int, round_size: int, max_attempts: int | None) -> int:
    """As many attempts as are likely to be needed; few rather than many at first, since unused replies cost money."""
    rate = (summary.admitted + 2) / (summary.attempts + 2)
    size = min(round_size, math.ceil(wanted / rate))
    return size if max_attempts is None else min(size, max_attempts - summary.attempts)


def _settings(
    model: ChatModel,
    corpus: Corpus | CleanCorpus | None,
    designer: Designer,
    seed: int,
    round_size: int,
    sampling: Sampling,
) -> dict[str, Any]:
    """What must be the same for a resume to come to the same set."""
    return {
        "model": model.name,
        "corpus": corpus.fingerprint if corpus is not None else "",
        "prompts": designer.prompts.fingerprint,
        "seed": seed,
        "round_size": round_size,
        "max_turns": designer.max_turns,
        "document_tokens": designer.prompts.document_tokens,
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
    if changed := changed_settings(state, settings):
        raise GenerateError(f"run {run!r} cannot be resumed with other settings: {changed}. "
                            f"Use the old ones, or choose another name for the run")  # fmt: skip


def _check_progress(summary: GenerateSummary, barren: int, patience: int, max_attempts: int | None) -> None:
    reasons = ", ".join(f"{cause} {number}" for cause, number in summary.causes.most_common() if cause != "admitted")
    so_far = (
        f"{summary.admitted} of {summary.count} environments after {summary.attempts} attempts ({reasons or 'none'})"
    )
    said = f". The model's last error: {summary.model_error[:300]}" if summary.model_error else ""
    if barren >= patience:
        raise GenerateError(f"{barren} rounds in a row added nothing; {so_far}. The log has the reason of each; "
                            f"try a stronger model, another corpus or a higher temperature{said}")  # fmt: skip
    if max_attempts is not None and summary.attempts >= max_attempts:
        raise GenerateError(
            f"the bound of {max_attempts} attempts is reached; {so_far}. Resume with a higher one{said}"
        )
