"""Models that answer by a rule, and suites small enough to see through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from spade_envs.models.base import Completion, Conversation, ModelError, Sampling
from spade_train.evaluation.protocol import Protocol
from spade_train.evaluation.question import Question
from spade_train.evaluation.suite import TextSuite

SUMS = Protocol("sums", "Sums", {"small": "small", "large": "large"}, samples=2, temperature=1.0, max_tokens=32)


class RuleModel:
    """Answers the last message by a rule; counts what it is asked. It may fail for good after so many questions."""

    def __init__(self, rule: Callable[[str, int], str], name: str = "rule", last: int = 1 << 30) -> None:
        self._rule, self._name, self._last = rule, name, last
        self.asked: list[str] = []

    @property
    def name(self) -> str:
        return self._name

    def complete(self, conversations: Sequence[Conversation], sampling: Sampling) -> list[Completion]:
        if len(self.asked) + len(conversations) > self._last:
            raise ModelError("gone")
        self.asked += [conversation[-1]["content"] for conversation in conversations]
        texts = [
            self._rule(conversation[-1]["content"], sampling.seed + place)
            for place, conversation in enumerate(conversations)
        ]
        errors = {"!": "no reply", "?": "the prompt has 9 tokens, the model's context 8"}
        return [
            Completion("", finish_reason="error", error=errors[text])
            if text in errors
            else Completion(text, 3, len(text))
            for text in texts
        ]

    def close(self) -> None:
        pass


class SumSuite(TextSuite):
    """Additions; right is the sum."""

    def __init__(self, count: int = 10, **changes: object) -> None:
        super().__init__("sums", replace(SUMS, **changes))
        self._count = count

    def questions(self, limit: int = 0) -> list[Question]:
        made = [
            Question(f"q{n}", self.messages(f"{n}+{n}"), "small" if n < 5 else "large", str(2 * n))
            for n in range(self._count)
        ]
        return made[: limit or None]

    def score(self, question: Question, text: str) -> tuple[float, dict[str, object]]:
        return float(text == question.reference), {"answer": text}


def right(text: str, _: int) -> str:
    """The sum."""
    return str(sum(int(part) for part in text.split("+")))


def noisy(text: str, seed: int) -> str:
    """The sum, or something else, by the seed."""
    return right(text, 0) if seed % 3 else f"seed {seed}"
