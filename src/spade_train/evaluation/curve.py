"""Relative improvement over the base by training step, from evaluations during training."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from spade_train.evaluation.protocol import EvaluationError

Points = Sequence[tuple[int, float]]
"""(step, improvement in percent of the base's score)."""


def improvements(folder: str | Path, metric: str) -> list[tuple[int, float]]:
    """Return the improvement at every step of a run that was evaluated, in percent of its first score.

    Args:
        folder: of a training run; its ``metrics.jsonl`` is read.
        metric: name of the score in it. The first one is the base's: evaluate at step 0, or it is the first step's.

    Raises:
        EvaluationError: if there is no such score, or the base's is 0, so that nothing is relative to it.
    """
    path = Path(folder) / "metrics.jsonl"
    if not path.is_file():
        raise EvaluationError(f"{path} does not exist: expected the folder of a training run")
    scores: dict[int, float] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            row = json.loads(line)
        except ValueError:  # a line that a kill cut in half
            continue
        if metric in row:
            scores[int(row["step"])] = float(row[metric])
    if not scores:
        raise EvaluationError(f"{path} has no {metric!r}: was the run evaluated on the way?")
    steps = sorted(scores)
    base = scores[steps[0]]
    if base <= 0:
        raise EvaluationError(f"{path}: the first {metric} is {base:g}; no improvement is relative to that")
    return [(step, 100.0 * (scores[step] - base) / base) for step in steps]


def draw(series: Mapping[str, Points], output: Path, metric: str) -> None:
    """Draw one line for each run; the format follows the file's suffix.

    Raises:
        EvaluationError: if matplotlib is not installed, or does not know the format.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise EvaluationError("figures need matplotlib: pip install 'spade-envs[train]'") from error
    figure = Figure(figsize=(6.0, 3.6), layout="constrained")
    axes = figure.subplots()
    for name, points in series.items():
        axes.plot([step for step, _ in points], [gain for _, gain in points], marker="o", markersize=3, label=name)
    axes.axhline(0.0, color="0.6", linewidth=0.8)
    axes.set(xlabel="training step", ylabel="improvement over the base (%)", title=f"{metric} (measured here)")
    axes.legend()
    output.parent.mkdir(parents=True, exist_ok=True)
    try:
        figure.savefig(output)
    except ValueError as error:
        raise EvaluationError(f"{output}: {error}") from error
