"""What a quickstart reports: its figures, its plots, and what it does not show."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spade_envs import __version__
from spade_envs.cli.console import out, shown
from spade_train.report import Score, bars, curves, write_report

LIMITS = (
    "One run of one seed with a model of 0.6 million parameters. It shows that every part works together, not that "
    "self-play beats anything: no baseline was trained beside it, and a claim of learning needs at least three seeds "
    "and its spread.",
    "The embedded model writes small programs of a few families that it was taught; it does not invent new kinds.",
    "Its hints carry a bounded part of the answer, because a model of this size cannot use a strategy in words. "
    "Regret here is therefore not the regret of a large model that is told an idea.",
    "Returns during training are those of freshly written environments, whose difficulty moves with the designer; only "
    "the held-out set is the same before and after.",
    "Warm-start training already taught the agent these families, and the best of several of its answers is much "
    "better than one: what reinforcement learning gains here is to a good part making such answers likelier.",
)

FILES = (
    ("report.html", "this page"),
    ("memory/", "all environments, as SQLite and a vector index; open it with spade list --memory"),
    ("adapter/", "the LoRA adapter after training, for peft and transformers"),
    ("metrics.jsonl", "one line an iteration"),
    ("transcripts.jsonl", "every program written, and a plain and a hinted episode of each environment"),
    ("attempts.jsonl", "every attempt of the generation before training, with the reason of each refusal"),
    ("summary.json", "the figures of this page"),
    ("checkpoint-*/", "adapter, optimiser and orchestrator state; training resumes from them"),
)


def _window(metrics: Sequence[Mapping[str, Any]], key: str, *, last: bool) -> float | None:
    """Mean of a metric over the first or the last quarter of the iterations (at least one)."""
    values = [line[key] for line in metrics if key in line]
    width = max(1, len(values) // 4)
    chosen = values[-width:] if last else values[:width]
    return sum(chosen) / len(chosen) if chosen else None


def summarise(
    folder: Path,
    generation: Mapping[str, Any],
    before: Mapping[str, Score],
    after: Mapping[str, Score],
    metrics: Sequence[Mapping[str, Any]],
    seconds: float,
    seed: int,
) -> dict[str, Any]:
    """Return the figures of a run, JSON-safe."""
    keys = (
        "design/valid",
        "environment/plain_return",
        "environment/hinted_return",
        "environment/regret",
        "environment/learnable",
    )

    def scores(values: Mapping[str, Score]) -> dict[str, Any]:
        return {
            name: {"success": round(score.rate, 4), "interval": score.interval, "n": score.episodes}
            for name, score in values.items()
        }

    return {
        "folder": str(folder),
        "seed": seed,
        "seconds": round(seconds, 1),
        "generated": generation["admitted"],
        "attempts": generation["attempts"],
        "admitted_share": round(generation["admitted"] / max(1, generation["attempts"] - _surplus(generation)), 4),
        "iterations": len(metrics),
        "before": scores(before),
        "after": scores(after),
        "training_first_quarter": {key: _window(metrics, key, last=False) for key in keys},
        "training_last_quarter": {key: _window(metrics, key, last=True) for key in keys},
    }


def _surplus(generation: Mapping[str, Any]) -> int:
    return int(generation["causes"].get("surplus", 0))


def write_quickstart_report(
    folder: Path,
    summary: Mapping[str, Any],
    before: Mapping[str, Score],
    after: Mapping[str, Score],
    metrics: Sequence[Mapping[str, Any]],
    example: Mapping[str, Any],
    seed: int,
) -> None:
    """Write ``report.html`` into the run folder."""
    first, last = summary["training_first_quarter"], summary["training_last_quarter"]
    labels = {
        "design/valid": "designs that are valid",
        "environment/plain_return": "return on new designs, plain",
        "environment/hinted_return": "return on new designs, hinted",
        "environment/regret": "regret",
        "environment/learnable": "share of new designs in the learnable band",
    }
    table = [(_label(name), str(before[name]), str(score)) for name, score in after.items()]
    table += [
        (f"{words} (first, last quarter of training)", _two(first[key]), _two(last[key]))
        for key, words in labels.items()
    ]
    tiers = [name for name in before if name.startswith("tier")]
    write_report(
        folder / "report.html",
        title="SPADE quickstart: one small policy designs, plays and learns",
        summary=(
            f"{summary['generated']} environments were generated and registered ({summary['admitted_share']:.0%} of "
            f"what the model wrote was admitted), then one policy trained for {summary['iterations']} iterations as "
            f"their designer and their player, in {summary['seconds'] / 60:.1f} minutes in all."
        ),
        table=table,
        table_note=(
            "Held-out programs come from a grammar with its own seed and words; the designer did not write them."
        ),
        pictures=[*curves(metrics), bars({t: before[t] for t in tiers}, {t: after[t] for t in tiers})],
        limits=LIMITS,
        example=example,
        designs=_designs(folder / "transcripts.jsonl"),
        files=FILES,
        version=__version__,
        seed=seed,
    )


def _label(name: str) -> str:
    """Name a score of the quickstart for people."""
    return {
        "all": "held-out success, greedy, all tiers",
        "sampled": "held-out success, temperature 1, all tiers",
        "designs": "validity of designs for the same documents",
    }.get(name, f"held-out success, greedy, {name}")


def _two(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _designs(path: Path) -> list[dict[str, Any]]:
    """Return three designs of the first and three of the last iteration."""
    if not path.is_file():
        return []
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    designs = [line for line in lines if line["type"] == "design"]
    return [*designs[:3], *designs[-3:]] if len(designs) > 6 else designs


def print_summary(folder: Path, summary: Mapping[str, Any]) -> None:
    """Print the figures that matter on the terminal."""
    before, after = summary["before"], summary["after"]
    for name in ("all", "sampled", "designs"):
        low, high = after[name]["interval"]
        out.print(
            f"{_label(name)}: {before[name]['success']:.3f} → {after[name]['success']:.3f} (95 % {low:.3f}–{high:.3f})"
        )
    out.print(f"{summary['seconds']:.0f} s in all; one seed, so no claim of learning: see the report")
    out.print(f"report  {shown(str(folder / 'report.html'))}")
    out.print(f"next    spade list --memory {shown(str(folder / 'memory'))}")
