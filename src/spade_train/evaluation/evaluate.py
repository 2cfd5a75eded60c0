"""One model on one suite: from the questions to the result's files, taking from them what is there."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from typing import Protocol as Interface

from spade_envs.models.base import ChatModel
from spade_envs.models.usage import Prices
from spade_train.evaluation.journal import AnswerJournal
from spade_train.evaluation.protocol import EvaluationError, Protocol
from spade_train.evaluation.question import Answer, Question
from spade_train.evaluation.results import (
    JOURNAL_FILE,
    RESULT_FILE,
    Result,
    summarise,
    write_generations,
    write_result,
)
from spade_train.evaluation.runner import Notice, RunSettings, plan, run_items
from spade_train.evaluation.suite import Suite


class NamedSuite(Interface):
    """What a suite is known by; all that files and keys of a run need of it."""

    @property
    def name(self) -> str:
        """As ``--suite`` names it."""
        ...

    @property
    def version(self) -> str:
        """What questions and scorer depend on besides the protocol."""
        ...

    @property
    def protocol(self) -> Protocol:
        """How it is asked."""
        ...


def run_key(identity: str, suite: NamedSuite, limit: int, seed: int) -> str:
    """Return the hash by which a run is found again: model, suite with its version, protocol, limit, seed."""
    facts = [identity, suite.name, suite.version, suite.protocol.hash, limit, seed]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:12]


def run_folder(output: Path, identity: str, suite: NamedSuite, limit: int, seed: int) -> Path:
    """Return the folder of a run within ``output``."""
    model = re.sub(r"[^A-Za-z0-9.]+", "-", identity.split("@")[0]).strip("-")[:60]
    name = re.sub(r"[^A-Za-z0-9.]+", "-", suite.name).strip("-")[:60]
    return output / model / f"{name}-{run_key(identity, suite, limit, seed)}"


def evaluate(
    suite: Suite,
    model: Callable[[], ChatModel],
    identity: str,
    output: Path,
    *,
    label: str = "",
    limit: int = 0,
    settings: RunSettings | None = None,
    prices: Prices | None = None,
    as_published: bool = True,
    notice: Notice | None = None,
) -> tuple[Result, Path, int]:
    """Return the result, its folder, and how many answers this call asked for (0: all were there).

    Args:
        suite: what to ask.
        model: makes it; not called where the result is there.
        identity: what the model is, beyond its name: the cache's key.
        output: folder of all evaluations.
        label: the model's name in tables; by default its identity without the hash.
        limit: ask only so many questions, in turn from each column; 0: all.
        settings: concurrency, batches, seed.
        prices: of tokens, for the cost.
        as_published: whether the suite's protocol is the data file's.
        notice: called with the progress.

    Raises:
        EvaluationError: if the questions cannot be had.
        ModelError: if the model cannot be used.
    """
    settings = settings or RunSettings()
    folder = run_folder(output, identity, suite, limit, settings.seed)
    if (folder / RESULT_FILE).is_file():
        known = Result.load(folder)
        if not known.errors:
            return known, folder, 0
    questions = suite.questions(limit)
    if not questions:
        raise EvaluationError(f"suite {suite.name} has no questions")
    if len({question.id for question in questions}) < len(questions):
        raise EvaluationError(f"suite {suite.name} has two questions with the same id")
    journal = AnswerJournal(folder / JOURNAL_FILE)
    try:
        outcome = run_items(suite, plan(questions, suite.protocol.samples), model(), journal, settings, notice)
    finally:
        journal.close()
    result = finish(
        *(suite, label or identity.split("@")[0], folder, questions, outcome.answers, prices),
        limit=limit if limit and len(questions) >= limit else 0,
        as_published=as_published,
        key=run_key(identity, suite, limit, settings.seed),
        seed=settings.seed,
        seconds=outcome.seconds,
    )
    return result, folder, outcome.asked


def finish(
    suite: NamedSuite,
    model: str,
    folder: Path,
    questions: list[Question],
    answers: list[Answer],
    prices: Prices | None,
    **facts: Any,
) -> Result:
    """Write the files of a finished run and return its result."""
    result = summarise(suite.protocol, suite.name, model, answers, version=suite.version, **facts)
    if prices is not None:
        cost = (result.prompt_tokens * prices.prompt + result.completion_tokens * prices.completion) / 1e6
        result = dataclasses.replace(result, cost=cost)
    folder.mkdir(parents=True, exist_ok=True)
    write_generations(folder, {question.id: question for question in questions}, answers)
    write_result(folder, result)
    return result
