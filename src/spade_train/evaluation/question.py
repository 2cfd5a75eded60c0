"""What is asked and what came back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spade_envs.models.base import Message


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a suite. ``id`` is unique within the suite and the same in every run."""

    id: str
    messages: tuple[Message, ...] = ()
    group: str = ""  # the column that it counts for
    reference: Any = None  # what the scorer needs; never shown to the model

    @property
    def text(self) -> str:
        """All that the model is shown, as one text."""
        return "\n".join(message["content"] for message in self.messages)


@dataclass(frozen=True, slots=True)
class Item:
    """One question to be answered once; ``sample`` counts the answers to the same question."""

    question: Question
    sample: int = 0

    @property
    def key(self) -> tuple[str, int]:
        """What an answer is found by."""
        return self.question.id, self.sample


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer and its score. ``error`` is set where the model gave none; it is asked for again by the next run."""

    id: str
    sample: int
    group: str
    score: float  # in [0, 1]
    text: str = ""  # the raw generation; of an episode, its transcript as JSON
    finish: str = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0
    error: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)  # what the scorer found

    @property
    def key(self) -> tuple[str, int]:
        """The item that it answers."""
        return self.id, self.sample
