"""AIME: competition mathematics with an integer answer, scored by the package ``math-verify``."""

from __future__ import annotations

import multiprocessing
import threading
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from spade_train.evaluation.protocol import EvaluationError, Protocol
from spade_train.evaluation.question import Question
from spade_train.evaluation.suite import TextSuite
from spade_train.evaluation.suites.extraction import final_answer
from spade_train.evaluation.suites.rows import HubData, fingerprint, read_rows

_SECONDS = 10


class MathsSuite(TextSuite):
    """Rows with ``problem`` and ``answer`` (and ``id``), from the Hub or a local file."""

    def __init__(self, name: str, protocol: Protocol, data: str | Path | None = None) -> None:
        super().__init__(name, protocol)
        self._data = data
        self._rows: list[dict[str, Any]] | None = None
        self._verifier = MathVerifier()

    @property
    def version(self) -> str:
        """A hash of the rows, and the scorer's version."""
        return f"data {fingerprint(self._load())}, math-verify {self._verifier.version}"

    def questions(self, limit: int = 0) -> list[Question]:
        """See :class:`Suite`."""
        return [
            Question(
                str(row.get("id", row.get("problem_idx", number))),
                self.messages(str(row["problem"])),
                reference=str(row["answer"]),
            )
            for number, row in enumerate(self._load()[: limit or None])
        ]

    def score(self, question: Question, text: str) -> tuple[float, dict[str, object]]:
        """1 if the boxed answer equals the reference, by number or by ``math-verify``."""
        given = final_answer(text)
        return float(self._verifier.equal(str(question.reference), given)), {"answer": given}

    def close(self) -> None:
        """End the verifier's process."""
        self._verifier.close()

    def _load(self) -> list[dict[str, Any]]:
        if self._rows is None:
            hub = HubData(**self.protocol.options["hub"])
            self._rows = read_rows(self.name, self._data, hub, ("problem", "answer"))
        return self._rows


class MathVerifier:
    """``math-verify`` in a process of its own: an expression may take for ever, and its alarm needs a main thread."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self._lock = threading.Lock()

    @property
    def version(self) -> str:
        """The version of the package.

        Raises:
            EvaluationError: if it is not installed.
        """
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("math-verify")
        except PackageNotFoundError as error:
            raise EvaluationError("scoring mathematics needs math-verify: pip install 'spade-envs[eval]'") from error

    def equal(self, reference: str, given: str) -> bool:
        """Whether two answers are the same number or expression; what cannot be read is not."""
        if not given:
            return False
        plain = _integer(given)
        if plain is not None and _integer(reference) is not None:
            return plain == _integer(reference)
        with self._lock:
            if self._pool is None:
                self._pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
            try:
                return self._pool.submit(_verify, reference, given).result(timeout=4 * _SECONDS + 30)
            except (TimeoutError, BrokenProcessPool):
                self._end()
                return False

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._pool is not None:
            for process in (self._pool._processes or {}).values():
                process.kill()
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None


def _verify(reference: str, given: str) -> bool:
    from math_verify import parse, verify

    gold = parse(f"${reference}$", parsing_timeout=_SECONDS)
    target = parse(f"\\boxed{{{given}}}", parsing_timeout=_SECONDS)
    return bool(verify(gold, target, timeout_seconds=_SECONDS))


def _integer(text: str) -> int | None:
    text = text.strip().strip("$").replace(",", "").removesuffix(".").strip()
    sign = text[:1] in ("+", "-")
    digits = text[sign:]
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 100 else None
