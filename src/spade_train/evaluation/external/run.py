"""Which official evaluator runs a suite, and the files that come of it: the same as of any other suite."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from spade_envs.models.usage import Prices
from spade_train.evaluation.evaluate import finish, run_folder, run_key
from spade_train.evaluation.external import acebench
from spade_train.evaluation.external.bfcl import BfclRun, categories_of
from spade_train.evaluation.external.files import checkout_hash
from spade_train.evaluation.external.tau2 import Tau2Run, domains_of
from spade_train.evaluation.protocol import EvaluationError, Protocol, published_protocol
from spade_train.evaluation.question import Answer, Question
from spade_train.evaluation.results import RESULT_FILE, Result
from spade_train.evaluation.runner import Notice
from spade_train.serving.process import Served, served_model

Run = Callable[[Path, Protocol, "ExternalOptions", Notice | None], tuple[list[Question], list[Answer], int]]
"""An evaluator's run in its folder: questions, answers, how many were new."""


@dataclass(frozen=True, slots=True)
class ExternalOptions:
    """The model under test, and what the evaluators need to know."""

    model: str
    adapter: Path | None = None
    base_url: str | None = None
    device: str | None = None
    dtype: str | None = None
    batch: int = 16
    limit: int = 0
    temperature: float | None = None
    concurrency: int = 16
    acebench_dir: Path | None = None
    tau2_dir: Path | None = None
    user_model: str | None = None  # None: the protocol's; "self": the model under test
    user_base_url: str | None = None
    max_tokens: int | None = None
    seed: int = 0
    samples: int | None = None

    @property
    def key(self) -> str:
        """Of the endpoint under test; one of our own has none."""
        return os.environ.get("OPENAI_API_KEY", "") if self.model.startswith("openai:") else ""

    @property
    def user_at_openai(self) -> bool:
        """Whether OpenAI's own endpoint plays the user."""
        return self.user_model != "self" and self.user_base_url is None

    @property
    def user_key(self) -> str:
        """Of the endpoint of the simulated user."""
        return self.key if self.user_model == "self" else os.environ.get("OPENAI_API_KEY", "")

    def serve(self, protocol: Protocol) -> AbstractContextManager[Served]:
        """Give an endpoint of the model under test."""
        return served_model(
            self.model,
            adapter=self.adapter,
            base_url=self.base_url,
            device=self.device,
            dtype=self.dtype,
            batch=self.batch,
            max_tokens=protocol.max_tokens,
        )


@dataclass(frozen=True, slots=True)
class _Named:
    """What :func:`run_key` and :func:`finish` want to know of a suite."""

    name: str
    version: str
    protocol: Protocol


def run_external(
    name: str,
    options: ExternalOptions,
    identity: str,
    output: Path,
    label: str,
    prices: Prices | None,
    notice: Notice | None,
) -> tuple[Result, Path, int]:
    """Run a suite by its official evaluator; returns what :func:`~spade_train.evaluation.evaluate.evaluate` does.

    Raises:
        EvaluationError: if the evaluator cannot be had, or fails.
        ModelError: if the model cannot be served.
    """
    kind = name.partition(":")[0]
    protocol = published_protocol(kind)
    asked = protocol.changed(
        temperature=options.temperature, max_tokens=options.max_tokens, samples=_samples(name, options.samples)
    )
    as_published = asked == protocol
    started = time.monotonic()
    if kind == "bfcl-v4":
        suite = _Named(name, str(asked.options["package"]), asked)
        run: Run = partial(_bfcl, name)
    elif kind == "acebench":
        if (categories := acebench.categories_of(name)) != acebench.CATEGORIES["agent"]:
            title = f"ACE {name.partition(':')[2]}"  # the protocol's is that of the agent's tasks
            asked = replace(asked, columns={category: category for category in categories} | {"": title})
        checkout = _checkout(options.acebench_dir, "acebench", "generate.py", "github.com/ACEBench/ACEBench")
        suite = _Named(name, _version(options, protocol, checkout, ("**/*.py", "data_all/data_en/**/*.json")), asked)
        run = partial(_ace, name, checkout)
    else:
        checkout = _checkout(options.tau2_dir, "tau2", "pyproject.toml", "github.com/sierra-research/tau2-bench")
        data = [f"data/tau2/domains/{domain}/*" for domain in domains_of(name, protocol)]
        suite = _Named(name, _version(options, protocol, checkout, ("src/**/*.py", *data)), asked)
        run = partial(_tau2, name, checkout)
    if kind != "bfcl-v4":
        as_published &= options.user_model in (None, protocol.options["user"])
    folder = run_folder(output, identity, suite, options.limit, options.seed)
    if (folder / RESULT_FILE).is_file() and not (known := Result.load(folder)).errors:
        return known, folder, 0
    questions, answers, new = run(folder, asked, options, notice)
    result = finish(
        *(suite, label, folder, questions, answers, prices),
        limit=options.limit,
        as_published=as_published,
        key=run_key(identity, suite, options.limit, options.seed),
        seed=options.seed,
        seconds=time.monotonic() - started,
    )
    return result, folder, new


def _bfcl(
    name: str, folder: Path, protocol: Protocol, options: ExternalOptions, notice: Notice | None
) -> tuple[list[Question], list[Answer], int]:
    run = BfclRun(folder, protocol, categories_of(name))
    questions = run.questions(options.limit)
    missing = [question for question in questions if question.id not in run.done()]
    if missing or not run.scored():
        with options.serve(protocol) as served:
            run.run(questions, served, options.concurrency, options.key, bool(options.limit), notice)
    return questions, run.answers(questions), len(missing)


def _ace(
    name: str, checkout: Path, folder: Path, protocol: Protocol, options: ExternalOptions, notice: Notice | None
) -> tuple[list[Question], list[Answer], int]:
    run = acebench.AceRun(folder, protocol, checkout, acebench.categories_of(name))
    questions = run.questions(options.limit)
    missing = len(questions) - len(run.done(questions))
    if missing or not run.scored(questions):
        with options.serve(protocol) as served:
            run.run(questions, served, _user(options, protocol, served), options, notice)
    return questions, run.answers(questions), missing


def _tau2(
    name: str, checkout: Path, folder: Path, protocol: Protocol, options: ExternalOptions, notice: Notice | None
) -> tuple[list[Question], list[Answer], int]:
    run = Tau2Run(folder, protocol, checkout, domains_of(name, protocol), options.limit)
    before, complete = run.done()
    if not complete:
        with options.serve(protocol) as served:
            run.run(served, _user(options, protocol, served), options, notice)
    questions, answers = run.collected()
    return questions, answers, len(answers) - before


def _user(options: ExternalOptions, protocol: Protocol, served: Served) -> Served:
    """Who plays the user: the model under test itself, or another endpoint."""
    if options.user_model == "self":
        return served
    model = options.user_model or str(protocol.options["user"])
    return Served(options.user_base_url or "https://api.openai.com/v1", model)


def _version(options: ExternalOptions, protocol: Protocol, checkout: Path, patterns: Sequence[str]) -> str:
    """What a run depends on besides its protocol: who plays the user, and the checkout."""
    return f"user {options.user_model or protocol.options['user']}, checkout {checkout_hash(checkout, patterns)}"


def _samples(name: str, samples: int | None) -> int | None:
    if samples is not None and not name.startswith("tau2-bench"):
        raise EvaluationError(f"--samples: {name} is asked once by its official evaluator")
    return samples


def _checkout(folder: Path | None, option: str, holds: str, where: str) -> Path:
    if folder is None:
        raise EvaluationError(f"--{option}-dir is missing: git clone https://{where}, and give the folder")
    if not (folder / holds).is_file():
        raise EvaluationError(f"--{option}-dir {folder} is no checkout of {where}: it has no {holds}")
    return folder.resolve()
