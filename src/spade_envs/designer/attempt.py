"""What was asked of a designer and what became of each of its replies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from spade_envs.corpus import Document
from spade_envs.models.base import Message
from spade_envs.record import EnvironmentRecord
from spade_envs.validation.finding import Report

Status = Literal["admitted", "refused", "duplicate", "no_code", "model_error", "surplus"]
"""``surplus``: not looked at, because the count was reached by replies before it in the same round."""


@dataclass(frozen=True, slots=True)
class DesignPrompt:
    """One request for an environment."""

    messages: list[Message]
    skill: str
    document: Document | None = None
    parents: tuple[str, ...] = ()  # ids of the exemplars in it, the negative ones not included
    drawn: Mapping[str, str] = field(default_factory=dict)  # of the prompt set's [draw] tables


@dataclass(frozen=True, slots=True)
class Attempt:
    """A reply of a designer, the last one where it was asked for repairs. ``reason`` is empty only if it is admitted.

    ``prompt_tokens``, ``tokens`` and ``seconds`` are sums over the conversation.
    """

    skill: str
    status: Status
    document_id: str = ""
    parents: tuple[str, ...] = ()
    raw: str = ""
    source: str = ""
    record: EnvironmentRecord | None = None
    reason: str = ""
    cause: str = ""  # a short stable word for counting: the probe that refused, else the status
    report: Report | None = None
    mends: tuple[str, ...] = ()
    index: int = 0
    round: int = 0
    seed: int = 0
    prompt_tokens: int = 0
    tokens: int = 0
    finish: str = "stop"  # "length": the reply was cut off
    seconds: dict[str, float] = field(default_factory=dict)  # wall-clock by stage
    earlier: tuple[Attempt, ...] = ()  # refused replies in the same conversation, oldest first; tokens are in ours

    @property
    def first(self) -> Attempt:
        """The first reply of the conversation, before any repair."""
        return self.earlier[0] if self.earlier else self

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-safe line of the log; the record itself is in the memory."""
        return {
            "round": self.round,
            "index": self.index,
            "status": self.status,
            "cause": self.cause,
            "reason": self.reason,
            "id": self.record.id if self.record else "",
            "name": self.record.name if self.record else self.report.name if self.report else "",
            "skill": self.skill,
            "document_id": self.document_id,
            "parents": list(self.parents),
            "hint": self.record.hint if self.record else "",
            "mends": list(self.mends),
            "prompt_tokens": self.prompt_tokens,
            "tokens": self.tokens,
            "seed": self.seed,
            "seconds": {stage: round(value, 4) for stage, value in self.seconds.items()},
            "findings": [finding.to_dict() for finding in self.report.findings] if self.report else [],
            "raw": self.raw,
            "finish": self.finish,
            "first_status": self.first.status,
            "first_cause": self.first.cause,
            "repairs": len(self.earlier),
            "earlier": [attempt._turn() for attempt in self.earlier],
        }

    def _turn(self) -> dict[str, Any]:
        """What the log keeps of a reply that was sent back."""
        return {
            "status": self.status,
            "cause": self.cause,
            "reason": self.reason,
            "mends": list(self.mends),
            "findings": [finding.to_dict() for finding in self.report.findings] if self.report else [],
            "raw": self.raw,
            "finish": self.finish,
        }
