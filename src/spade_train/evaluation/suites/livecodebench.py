"""LiveCodeBench: programs against the official tests, pass@1 (Jain et al. 2024, arXiv 2403.07974)."""

from __future__ import annotations

import base64
import io
import json
import pickle
import re
import zlib
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, NoReturn

from spade_envs.sandbox.scripts import ScriptLimits, run_script
from spade_envs.sandbox.types import IsolationLevel
from spade_envs.source_text.thoughts import without_thoughts
from spade_train.evaluation.protocol import EvaluationError, Protocol
from spade_train.evaluation.question import Question
from spade_train.evaluation.suite import TextSuite
from spade_train.evaluation.suites.rows import HubData, fingerprint, read_rows

_FENCE = re.compile(r"```(?:python|py|Python)?[ \t]*\n(.*?)```", re.DOTALL)
_MOST_TESTS_BYTES = 1 << 30
_HEAD = (
    "from string import *\nfrom re import *\nfrom datetime import *\nfrom collections import *\nfrom heapq import *\n"
    "from bisect import *\nfrom copy import *\nfrom math import *\nfrom random import *\nfrom statistics import *\n"
    "from itertools import *\nfrom functools import *\nfrom operator import *\nfrom io import *\nfrom sys import *\n"
    "from json import *\nfrom typing import *\nimport string, re, datetime, collections, heapq, bisect, copy, math\n"
    "import random, statistics, itertools, functools, operator, io, sys, json\n"
)
"""Imports that the official runner puts before a solution."""


class LiveCodeBenchSuite(TextSuite):
    """Rows in the fields of ``livecodebench/code_generation_lite``, from the Hub or a local file."""

    def __init__(
        self, name: str, protocol: Protocol, data: str | Path | None = None, minimum_isolation: IsolationLevel = "full"
    ) -> None:
        super().__init__(name, protocol)
        self._data = data
        self._rows: list[dict[str, Any]] | None = None
        options = protocol.options
        self._limits = ScriptLimits(float(options["seconds"]), int(options["memory_mb"]), minimum_isolation)

    @property
    def version(self) -> str:
        """A hash of the problems."""
        names = ("question_id", "question_content", "starter_code")
        return f"data {fingerprint([{name: row[name] for name in names} for row in self._load()])}"

    def questions(self, limit: int = 0) -> list[Question]:
        """See :class:`Suite`."""
        return [self._question(row) for row in self._load()[: limit or None]]

    def score(self, question: Question, text: str) -> tuple[float, dict[str, object]]:
        """1 if the last program in the reply passes every test."""
        program = program_in(text)
        if not program:
            return 0.0, {"program": "none"}
        row = question.reference
        tests = cases_of(row)
        function = _function(row)
        outcomes = run_script(_HEAD + program, [test["input"] for test in tests], self._limits, function=function)
        passed = 0
        for test, outcome in zip(tests, outcomes):
            same = same_value if function else same_output
            if outcome.status != "ok" or not same(outcome.text, test["output"]):
                words = outcome.status if outcome.status != "ok" else "wrong answer"
                detail = f"{words}: {outcome.text[:200]}" if outcome.status == "error" else words
                return 0.0, {"passed": passed, "tests": len(tests), "failed": detail}
            passed += 1
        return float(passed == len(tests)), {"passed": passed, "tests": len(tests)}

    def _question(self, row: dict[str, Any]) -> Question:
        starter = str(row.get("starter_code") or "")
        if starter.strip():
            how = (
                "You will use the following starter code to write the solution to the problem and enclose your code "
                f"within delimiters.\n```python\n{starter}\n```"
            )
        else:
            how = (
                "Read the inputs from stdin solve the problem and write the answer to stdout (do not directly test on "
                "the sample inputs). Enclose your code within delimiters as follows.\n```python\n# YOUR CODE HERE\n```"
            )
        text = f"### Question:\n{row['question_content']}\n\n### Format: {how}\n\n### Answer: (use the provided format "
        return Question(str(row["question_id"]), self.messages(f"{text}with backticks)\n"), reference=row)

    def _load(self) -> list[dict[str, Any]]:
        if self._rows is None:
            hub = HubData(**{**self.protocol.options["hub"], "files": tuple(self.protocol.options["hub"]["files"])})
            fields = ("question_id", "question_content", "starter_code", "public_test_cases", "private_test_cases")
            self._rows = read_rows(self.name, self._data, hub, fields)
        return self._rows


def program_in(text: str) -> str:
    """Return the last fenced block of a reply, as the official extraction does; "" if there is none."""
    blocks = _FENCE.findall(without_thoughts(text))
    return str(blocks[-1]).strip() if blocks else ""


def cases_of(row: dict[str, Any]) -> list[dict[str, str]]:
    """Return public and private tests, each with ``input`` and ``output``.

    Raises:
        EvaluationError: if they cannot be read.
    """
    try:
        found = _cases(row["public_test_cases"]) + _cases(row["private_test_cases"])
        return [{"input": str(case["input"]), "output": str(case["output"])} for case in found]
    except (ValueError, KeyError, TypeError, zlib.error, pickle.UnpicklingError) as error:
        raise EvaluationError(f"problem {row.get('question_id')}: its tests cannot be read: {error!r}") from error


class _TextOnly(pickle.Unpickler):
    """The data set packs its tests as a pickled string; nothing but a string comes out of this."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"a class ({module}.{name}) where only text is expected")


def _cases(packed: Any) -> list[dict[str, Any]]:
    if isinstance(packed, list):
        return packed
    try:
        return list(json.loads(packed))
    except ValueError:
        pass
    unzip = zlib.decompressobj()
    data = unzip.decompress(base64.b64decode(packed), _MOST_TESTS_BYTES)
    return list(json.loads(_TextOnly(io.BytesIO(data)).load()))


def _function(row: dict[str, Any]) -> str:
    metadata = row.get("metadata") or {}
    values = json.loads(metadata) if isinstance(metadata, str) else metadata
    return str(values.get("func_name") or "")


def same_output(given: str, expected: str) -> bool:
    """Whether two outputs agree line by line, stripped; or else number by number, as decimals."""
    ours, theirs = _lines(given), _lines(expected)
    return len(ours) == len(theirs) and all(a == b or _same_numbers(a, b) for a, b in zip(ours, theirs))


def same_value(given: str, expected: str) -> bool:
    """Whether two results of a function are the same JSON value."""
    try:
        return bool(json.loads(given) == json.loads(expected))
    except ValueError:
        return False


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().split("\n")]


def _same_numbers(one: str, other: str) -> bool:
    return (numbers := _decimals(one.split())) is not None and numbers == _decimals(other.split())


def _decimals(words: Sequence[str]) -> list[Decimal] | None:
    try:
        return [Decimal(word) for word in words]
    except (InvalidOperation, ValueError):
        return None
