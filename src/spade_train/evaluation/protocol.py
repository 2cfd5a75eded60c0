"""How a suite is asked and scored, and what was published about it: one YAML file for each suite, in ``data``."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

import yaml

from spade_envs.models.base import Sampling


class EvaluationError(ValueError):
    """A suite cannot be run as asked; the message says what is missing and how to get it."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One published figure, in percent. ``gain`` means points over the same paper's base model."""

    method: str
    column: str
    value: float
    source: str
    gain: bool = False


@dataclass(frozen=True, slots=True)
class Protocol:
    """Samples, sampling, prompt and columns of a suite.

    What changes an answer or its score is part of :attr:`hash`; titles, notes and published figures are not.
    """

    suite: str
    title: str
    columns: Mapping[str, str]  # group of questions -> title of its column
    samples: int = 1  # answers to each question, averaged
    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 8192
    max_turns: int = 1
    prompt: str = "{question}"
    system: str = ""
    metric: str = "share of questions answered correctly"
    options: Mapping[str, Any] = field(default_factory=dict)  # what only this suite knows
    notes: str = ""  # where the settings come from
    published: tuple[Figure, ...] = ()

    def __post_init__(self) -> None:
        if self.samples < 1 or self.max_tokens < 1 or self.max_turns < 1:
            raise EvaluationError(f"{self.suite}: samples, max_tokens and max_turns must be at least 1")
        if self.temperature < 0 or not 0 < self.top_p <= 1:
            raise EvaluationError(f"{self.suite}: temperature must be at least 0, top_p in (0, 1]")

    @property
    def hash(self) -> str:
        """Sixteen hex digits that change when answers or scores may."""
        told = ("title", "columns", "metric", "notes", "published")
        facts = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name not in told}
        return hashlib.sha256(json.dumps(facts, sort_keys=True, default=dict).encode()).hexdigest()[:16]

    def sampling(self, seed: int) -> Sampling:
        """The sampling of one unit of work."""
        return Sampling(self.max_tokens, self.temperature, self.top_p, seed)

    def changed(self, **changes: Any) -> Protocol:
        """Return a copy with those of ``changes`` that are not None."""
        return dataclasses.replace(self, **{name: value for name, value in changes.items() if value is not None})


def published_protocol(suite: str) -> Protocol:
    """Read the data file of a suite.

    Raises:
        EvaluationError: if there is none of that name, or it holds an unknown field.
    """
    path = files("spade_train.evaluation") / "data" / f"{suite}.yaml"
    if not path.is_file():
        raise EvaluationError(f"no protocol for a suite {suite!r}")
    values = yaml.safe_load(path.read_text(encoding="utf-8"))
    figures = tuple(Figure(**figure) for figure in values.pop("published", ()))
    known = {f.name for f in dataclasses.fields(Protocol)}
    if unknown := sorted(set(values) - known):
        raise EvaluationError(f"{path}: unknown field {unknown[0]!r}; expected {', '.join(sorted(known))}")
    return Protocol(published=figures, **values)


def published_means() -> tuple[Figure, ...]:
    """Published figures that are no suite's alone: means over the benchmarks of a paper."""
    text = (files("spade_train.evaluation") / "data" / "published.yaml").read_text(encoding="utf-8")
    return tuple(Figure(**figure) for figure in yaml.safe_load(text)["figures"])
