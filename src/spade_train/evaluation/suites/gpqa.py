"""GPQA-Diamond: questions of science with four choices (Rein et al. 2023, arXiv 2311.12022)."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

from spade_envs.source_text.thoughts import without_thoughts
from spade_train.evaluation.protocol import Protocol
from spade_train.evaluation.question import Question
from spade_train.evaluation.suite import TextSuite
from spade_train.evaluation.suites.extraction import final_answer
from spade_train.evaluation.suites.rows import HubData, fingerprint, read_rows

_WRONG = tuple(f"Incorrect Answer {number}" for number in (1, 2, 3))
_FIELDS = ("Question", "Correct Answer", *_WRONG)
_LETTER = re.compile(r"^\W*(?:\\text(?:bf)?\{)?\W*([A-D])\b")
_SAID = re.compile(r"(?:answer is|answer:)\s*\**\(?([A-D])\b", re.IGNORECASE)
_ORDER_SEED = 42
"""Of the order of choices: that of the paper's released evaluation, so that letters stand for the same texts."""


class GpqaSuite(TextSuite):
    """Rows in the fields of the data set ``Idavidrein/gpqa``, from the Hub (gated) or a local file."""

    def __init__(self, name: str, protocol: Protocol, data: str | Path | None = None) -> None:
        super().__init__(name, protocol)
        self._data = data
        self._rows: list[dict[str, Any]] | None = None

    @property
    def version(self) -> str:
        """A hash of the rows."""
        return f"data {fingerprint(self._load())}"

    def questions(self, limit: int = 0) -> list[Question]:
        """See :class:`Suite`."""
        rng = random.Random(_ORDER_SEED)
        found = []
        for number, row in enumerate(self._load()):
            order = list(range(4))
            rng.shuffle(order)
            texts = [str(row[name]).strip() for name in _FIELDS[1:]]
            choices = "\n".join(f"{letter}. {texts[place]}" for letter, place in zip("ABCD", order))
            messages = self.messages(f"{str(row['Question']).strip()}\n\n{choices}")
            found.append(Question(f"d{number}", messages, reference="ABCD"[order.index(0)]))
        return found[: limit or None]

    def score(self, question: Question, text: str) -> tuple[float, dict[str, object]]:
        """1 if the letter in the box (else after "answer is" or "answer:") is the right one."""
        letter = _letter(text)
        return float(letter == question.reference), {"answer": letter}

    def _load(self) -> list[dict[str, Any]]:
        if self._rows is None:
            hub = HubData(**self.protocol.options["hub"])
            self._rows = read_rows(self.name, self._data, hub, _FIELDS)
        return self._rows


def _letter(text: str) -> str:
    if found := _LETTER.match(final_answer(text)):
        return found.group(1)
    said = _SAID.findall(without_thoughts(text))
    return said[-1].upper() if said else ""
