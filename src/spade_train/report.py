"""A run as one HTML file: plots, a table, an environment with its episodes. Opens without a network."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

TEMPLATE = Path(__file__).parent / "report.html.jinja"

PANELS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    ("Validity of designs", (("design/valid", "valid"), ("design/duplicate", "duplicate"))),
    (
        "Return on the designs of each iteration",
        (("environment/plain_return", "plain"), ("environment/hinted_return", "hinted")),
    ),
    ("Regret: hinted minus plain return", (("environment/regret", "regret"),)),
    ("Share of designs in the learnable band (win rate 0.2–0.8)", (("environment/learnable", "learnable"),)),
)
"""Title of each plot, and the metrics in it with their labels."""


@dataclass(frozen=True, slots=True)
class Score:
    """Successes among independent trials: episodes won, or designs that are valid."""

    wins: int
    episodes: int

    @property
    def rate(self) -> float:
        """Share of successes."""
        return self.wins / self.episodes if self.episodes else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """95 % confidence interval of the rate (Wilson 1927, doi:10.1080/01621459.1927.10502953)."""
        if not self.episodes:
            return 0.0, 1.0
        z, n, p = 1.959964, self.episodes, self.rate
        centre = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        return max(0.0, centre - half), min(1.0, centre + half)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.rate:.3f} ({low:.3f}–{high:.3f}, n = {self.episodes})"


def moving_average(values: Sequence[float], width: int) -> list[float]:
    """Return the mean of each value and up to ``width - 1`` before it."""
    return [sum(values[max(0, index - width + 1) : index + 1]) / min(index + 1, width) for index in range(len(values))]


def _svg(figure: Any) -> str:
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", bbox_inches="tight", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def curves(metrics: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return one SVG for each of :data:`PANELS` that ``metrics`` (lines of metrics.jsonl) has data for."""
    import matplotlib

    matplotlib.rcParams["svg.hashsalt"] = "spade"  # the same run gives the same file
    from matplotlib.figure import Figure

    pictures = []
    for title, series in PANELS:
        figure = Figure(figsize=(5.2, 2.6))
        axes = figure.add_subplot()
        drawn = False
        for index, (key, label) in enumerate(series):
            points = [(line["step"], line[key]) for line in metrics if key in line]
            if not points:
                continue
            drawn = True
            steps, values = [step for step, _ in points], [value for _, value in points]
            axes.plot(steps, values, ".", color=f"C{index}", alpha=0.35, markersize=4)
            axes.plot(steps, moving_average(values, 8), color=f"C{index}", label=label)
        if not drawn:
            continue
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("iteration", fontsize=9)
        axes.set_ylim(-0.25 if "Regret" in title else -0.03, 1.03)
        axes.grid(alpha=0.25)
        axes.legend(fontsize=8, frameon=False)
        pictures.append(_svg(figure))
    return pictures


def bars(before: Mapping[str, Score], after: Mapping[str, Score]) -> str:
    """Return an SVG of held-out success by tier before and after, with 95 % intervals."""
    import matplotlib

    matplotlib.rcParams["svg.hashsalt"] = "spade"
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 2.6))
    axes = figure.add_subplot()
    for offset, (label, scores) in enumerate((("before", before), ("after", after))):
        places = [index + 0.4 * offset for index in range(len(scores))]
        rates = [score.rate for score in scores.values()]
        errors = [
            [score.rate - score.interval[0] for score in scores.values()],
            [score.interval[1] - score.rate for score in scores.values()],
        ]
        axes.bar(places, rates, width=0.38, yerr=errors, capsize=3, label=label, error_kw={"alpha": 0.5})
    axes.set_xticks([index + 0.2 for index in range(len(before))], list(before), fontsize=9)
    axes.set_ylim(0, 1)
    axes.set_title("Held-out success", fontsize=10)
    axes.grid(axis="y", alpha=0.25)
    axes.legend(fontsize=8, frameon=False)
    return _svg(figure)


def write_report(path: Path, **values: Any) -> Path:
    """Render the report to ``path``; everything that is not an SVG of ours is escaped."""
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    temporary = path.with_name(f"{path.name}.tmp")
    temporary.write_text(template.render(values), encoding="utf-8", errors="replace")
    temporary.replace(path)
    return path
