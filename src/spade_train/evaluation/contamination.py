"""The guard against training on benchmarks: questions of suites, as :mod:`spade_envs.contamination` wants them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from spade_envs.contamination import ContaminationGuard, read_questions
from spade_train.evaluation.catalogue import ENVIRONMENTS, SuiteOptions, check_suite, is_external, make_suite
from spade_train.evaluation.protocol import EvaluationError

AUTO, OFF = "auto", "off"


def suite_questions(names: Sequence[str], options: SuiteOptions | None = None, limit: int = 0) -> dict[str, str]:
    """Return the texts of the suites' questions by ``suite/id``.

    Suites of environments have none: what they ask comes from programs, which are compared as programs.

    Raises:
        EvaluationError: if a suite's questions cannot be had, or an official evaluator keeps them.
    """
    found: dict[str, str] = {}
    for name in names:
        check_suite(name)
        if name.partition(":")[0] in ENVIRONMENTS:
            continue
        if is_external(name):
            raise EvaluationError(f"the questions of {name} are its evaluator's: write them to a JSONL file yourself")
        suite = make_suite(name, options)
        try:
            found |= {f"{name}/{question.id}": question.text for question in suite.questions(limit)}
        finally:
            suite.close()
    return found


def make_guard(chosen: str, evaluated: Sequence[str] = (), limit: int = 0) -> ContaminationGuard | None:
    """Return the guard that a setting asks for, None for none.

    Args:
        chosen: ``auto`` (the suites that are evaluated), ``off``, or suites and JSONL files, comma-separated.
        evaluated: suites that are evaluated on the way, with ``limit`` questions each.
        limit: of those.

    Raises:
        EvaluationError, ValueError: if questions cannot be had.
    """
    if chosen == OFF:
        return None
    questions = suite_questions([name for name in evaluated if not is_external(name)], limit=limit)
    if chosen != AUTO:
        names = [name.strip() for name in chosen.split(",") if name.strip()]
        files = [name for name in names if name.endswith(".jsonl")]
        questions |= suite_questions([name for name in names if name not in files])
        questions |= read_questions([Path(name) for name in files])
    return ContaminationGuard(questions) if questions else None
