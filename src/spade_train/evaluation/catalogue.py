"""Suites by name."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from spade_envs.sandbox.types import IsolationLevel
from spade_train.evaluation.protocol import EvaluationError, Protocol, published_protocol
from spade_train.evaluation.suite import Suite

QUESTIONS = ("reasoning-gym", "aime-2025", "aime-2026", "gpqa-diamond", "livecodebench-v6")
"""Suites whose questions we ask ourselves."""
EXTERNAL = ("bfcl-v4", "acebench", "tau2-bench")
"""Suites that an official evaluator asks, against an endpoint."""
ENVIRONMENTS = ("memory", "pool", "gymnasium")
"""Kinds of suites that name environments: ``memory:DIR``, ``pool:PATH``, ``gymnasium:ID[,ID…]``."""


@dataclass(frozen=True, slots=True)
class SuiteOptions:
    """What a user may say about suites. Overrides of the protocol are None where the data file's value stands."""

    data: Mapping[str, Path] = field(default_factory=dict)  # local files by suite
    prompts: str | None = None
    isolation: IsolationLevel = "full"
    samples: int | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    max_turns: int | None = None

    def apply(self, protocol: Protocol) -> Protocol:
        """Return the protocol with the overrides."""
        return protocol.changed(
            samples=self.samples, temperature=self.temperature, max_tokens=self.max_tokens, max_turns=self.max_turns
        )

    @property
    def as_published(self) -> bool:
        """Whether nothing of the protocol is overridden."""
        return (self.samples, self.temperature, self.max_tokens, self.max_turns) == (None, None, None, None)


def check_suite(name: str) -> None:
    """Check that there is a suite of this name.

    Raises:
        EvaluationError: otherwise, with names that are near.
    """
    kind, colon, rest = name.partition(":")
    if name in QUESTIONS or kind in EXTERNAL or (kind in ENVIRONMENTS and colon and rest):
        return
    near = difflib.get_close_matches(name, (*QUESTIONS, *EXTERNAL), 2)
    raise EvaluationError(
        f"no suite {name!r}"
        + (f"; did you mean {' or '.join(near)}?" if near else ".")
        + f" Expected one of {', '.join((*QUESTIONS, *EXTERNAL))}, memory:DIR, pool:PATH or gymnasium:ID"
    )


def is_external(name: str) -> bool:
    """Whether an official evaluator runs the suite."""
    return name.partition(":")[0] in EXTERNAL


def make_suite(name: str, options: SuiteOptions | None = None) -> Suite:
    """Make a suite that we ask ourselves.

    Raises:
        EvaluationError: if there is none of that name.
    """
    check_suite(name)
    options = options or SuiteOptions()
    kind = name.partition(":")[0]
    if kind in ENVIRONMENTS:
        from spade_train.evaluation.suites.environments import EnvironmentSuite

        protocol = options.apply(published_protocol("environments"))
        return EnvironmentSuite(name, protocol, prompts=options.prompts, minimum_isolation=options.isolation)
    protocol = options.apply(published_protocol(name))
    data = options.data.get(name)
    if name == "reasoning-gym":
        from spade_train.evaluation.suites.reasoning import ReasoningSuite

        return ReasoningSuite(name, protocol, options.isolation)
    if name == "gpqa-diamond":
        from spade_train.evaluation.suites.gpqa import GpqaSuite

        return GpqaSuite(name, protocol, data)
    if name == "livecodebench-v6":
        from spade_train.evaluation.suites.livecodebench import LiveCodeBenchSuite

        return LiveCodeBenchSuite(name, protocol, data, options.isolation)
    if name in ("aime-2025", "aime-2026"):
        from spade_train.evaluation.suites.maths import MathsSuite

        return MathsSuite(name, protocol, data)
    raise EvaluationError(f"{name} is run by its official evaluator, not question by question")
