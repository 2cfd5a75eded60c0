"""Which official evaluator runs a suite."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from spade_envs.models.usage import Prices
from spade_train.evaluation.protocol import EvaluationError
from spade_train.evaluation.results import Result
from spade_train.evaluation.runner import Notice


@dataclass(frozen=True, slots=True)
class ExternalOptions:
    """The model under test, and what the evaluators need to know."""

    model: str
    adapter: Path | None = None
    base_url: str | None = None
    device: str | None = None
    dtype: str | None = None
    batch: int = 16
    limit: int = 0
    temperature: float | None = None
    concurrency: int = 16
    acebench_dir: Path | None = None
    tau2_dir: Path | None = None
    user_model: str = "gpt-4o"
    user_base_url: str | None = None
    max_tokens: int | None = None
    seed: int = 0


def run_external(
    name: str,
    options: ExternalOptions,
    identity: str,
    output: Path,
    label: str,
    prices: Prices | None,
    notice: Notice | None,
) -> tuple[Result, Path, int]:
    """Run a suite by its official evaluator; returns what :func:`evaluate` does."""
    raise EvaluationError(f"no evaluator for {name}")
