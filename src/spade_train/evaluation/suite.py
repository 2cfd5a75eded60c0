"""What the runner asks of a suite, and suites of questions with one reply each."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence
from itertools import zip_longest
from typing import Protocol as Interface

from spade_envs.models.base import ChatModel, Message
from spade_envs.models.chat_template import TOO_LONG
from spade_train.evaluation.protocol import Protocol
from spade_train.evaluation.question import Answer, Item, Question

REFUSED = "refused"
"""As :attr:`Answer.finish`: the model cannot take this question, and never will."""
_REFUSAL = re.compile(rf"{TOO_LONG}|HTTP 4(00|13|22)\b|(Error during inference: )?Error code: 4(00|13|22)\b")


def is_refusal(error: str) -> bool:
    """Whether asking again would end the same way: the prompt is too long, or not to the server's taste."""
    return _REFUSAL.match(error) is not None


class Suite(Interface):
    """Questions with a protocol, and the way to have some of them answered and scored."""

    protocol: Protocol

    @property
    def name(self) -> str:
        """As ``--suite`` names it."""
        ...

    @property
    def version(self) -> str:
        """What the questions and the scorer depend on besides the protocol: package versions, a hash of the data."""
        ...

    def questions(self, limit: int = 0) -> list[Question]:
        """Return all questions, or the first ``limit`` of them, in turn from each group.

        Raises:
            EvaluationError: if they cannot be had; the message says what to install, download or permit.
        """
        ...

    def answer(self, items: Sequence[Item], model: ChatModel, seed: int) -> list[Answer]:
        """Have these items answered by ``model`` and scored, in order.

        Raises:
            ModelError: if the model as a whole cannot be used.
        """
        ...

    def close(self) -> None:
        """Release what was opened."""
        ...


def in_turn(questions: Sequence[Question], limit: int = 0) -> list[Question]:
    """Return the questions in turn from each group, so that the first few say something about every column."""
    groups: dict[str, list[Question]] = {}
    for question in questions:
        groups.setdefault(question.group, []).append(question)
    order = [question for row in zip_longest(*groups.values()) for question in row if question is not None]
    return order[: limit or None]


class TextSuite:
    """A suite whose questions get one reply each, scored by :meth:`score`."""

    def __init__(self, name: str, protocol: Protocol) -> None:
        self.protocol = protocol
        self._name = name

    @property
    def name(self) -> str:
        """As ``--suite`` names it."""
        return self._name

    @property
    def version(self) -> str:
        """What the scorer depends on."""
        return ""

    @abstractmethod
    def questions(self, limit: int = 0) -> list[Question]:
        """See :class:`Suite`."""

    @abstractmethod
    def score(self, question: Question, text: str) -> tuple[float, dict[str, object]]:
        """Return the score of a reply in [0, 1] and what was found in it."""

    def answer(self, items: Sequence[Item], model: ChatModel, seed: int) -> list[Answer]:
        """Ask for one reply to each item and score it."""
        completions = model.complete([item.question.messages for item in items], self.protocol.sampling(seed))
        answers = []
        for item, completion in zip(items, completions, strict=True):
            question = item.question
            error, finish = completion.error, str(completion.finish_reason)
            score, detail = (0.0, {}) if error else self.score(question, completion.text)
            if is_refusal(error):
                error, finish, detail = "", REFUSED, {"refused": error}
            answers.append(
                Answer(
                    *(question.id, item.sample, question.group, score, completion.text, finish),
                    *(completion.prompt_tokens, completion.completion_tokens, error, detail),
                )
            )
        return answers

    def close(self) -> None:
        """Nothing is held."""

    def messages(self, text: str) -> tuple[Message, ...]:
        """Return the conversation that asks ``text``, by the protocol's prompt."""
        asked: Message = {"role": "user", "content": self.protocol.prompt.replace("{question}", text)}
        system: Message = {"role": "system", "content": self.protocol.system}
        return (system, asked) if self.protocol.system else (asked,)
