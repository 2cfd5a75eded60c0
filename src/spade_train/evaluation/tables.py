"""Tables of results: Markdown, LaTeX, JSON. Published rows and ours are marked and never share a row."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import yaml

from spade_train.evaluation.protocol import EvaluationError, Figure, published_means, published_protocol
from spade_train.evaluation.results import Result, since

MEASURED, PUBLISHED = "measured here", "published"


def sources() -> dict[str, str]:
    """Where published figures come from, by the short name that figures carry."""
    text = (files("spade_train.evaluation") / "data" / "published.yaml").read_text(encoding="utf-8")
    found: dict[str, str] = yaml.safe_load(text)["sources"]
    return found


def published_figures(results: Sequence[Result], means: bool = False) -> list[Figure]:
    """Return the published figures of these results' suites."""
    figures: list[Figure] = []
    for suite in dict.fromkeys(result.suite.partition(":")[0] for result in results):
        try:
            figures += published_protocol(suite).published
        except EvaluationError:  # a suite of the user's own
            continue
    return figures + (list(published_means()) if means else [])


class ResultTable:
    """Rows of models, columns of all suites: ours first, then what was published on the same columns."""

    def __init__(self, results: Sequence[Result], published: bool = True) -> None:
        self.results = list(results)
        self.figures = published_figures(results) if published else []
        titles = [column.title for result in results for column in result.columns]
        titles += [figure.column for figure in self.figures]
        self.columns = list(dict.fromkeys(titles))

    def rows(self) -> list[list[str]]:
        """Cells as text: model, source, one for each column, remarks."""
        rows = []
        for model in dict.fromkeys(result.model for result in self.results):
            own = [result for result in self.results if result.model == model]
            cells = {
                column.title: _figure(column.score, column.interval) for result in own for column in result.columns
            }
            marks = "; ".join(f"{result.title}: {', '.join(result.marks)}" for result in own if result.marks)
            rows.append([model, MEASURED, *(cells.get(title, "") for title in self.columns), marks])
        for method in dict.fromkeys(figure.method for figure in self.figures):
            own_figures = [figure for figure in self.figures if figure.method == method]
            cells = {
                figure.column: f"{figure.value:+.1f} over its base" if figure.gain else f"{figure.value:.1f}"
                for figure in own_figures
            }
            notes = ", ".join(dict.fromkeys(figure.source for figure in own_figures))
            rows.append([method, PUBLISHED, *(cells.get(title, "") for title in self.columns), notes])
        return rows

    def header(self) -> list[str]:
        """Titles of the cells."""
        return ["model", "source", *self.columns, "remarks"]

    def notes(self) -> list[str]:
        """What stands under the table."""
        notes = [f"{result.title}: {result.metric}; {result.questions} questions" + _times(result)
                 for result in {result.title: result for result in self.results}.values()]  # fmt: skip
        notes.append("Percent, with 95 % intervals over questions: bootstrap, or Wilson's where all score alike.")
        notes += [f"{result.title}, {result.model}: answers missing{since(result.reason)}"
                  for result in self.results if result.reason]  # fmt: skip
        known = sources()
        notes += [f"{name}: {known[name].strip()}" for name in dict.fromkeys(f.source for f in self.figures)]
        return notes

    def markdown(self) -> str:
        """Return a Markdown table with its notes."""
        lines = [self.header(), ["---"] * len(self.header()), *self.rows()]
        table = "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
        return table + "\n\n" + "\n".join(f"- {note}" for note in self.notes()) + "\n"

    def latex(self) -> str:
        """Return a LaTeX table (package booktabs) with its notes as comments."""
        lines = [_latex(self.header()), "\\midrule"]
        last = ""
        for row in self.rows():
            if last and row[1] != last:
                lines.append("\\midrule")
            last = row[1]
            lines.append(_latex(row))
        columns = "ll" + "r" * len(self.columns) + "l"
        notes = "\n".join(f"% {note}" for note in self.notes())
        body = "\n".join(lines)
        return f"\\begin{{tabular}}{{{columns}}}\n\\toprule\n{body}\n\\bottomrule\n\\end{{tabular}}\n{notes}\n"

    def to_dict(self) -> dict[str, Any]:
        """Return both kinds of rows as data, apart."""
        return {
            MEASURED: [result.to_dict() for result in self.results],
            PUBLISHED: [
                {
                    "method": f.method,
                    "column": f.column,
                    "value": f.value,
                    "gain": f.gain,
                    "source": sources()[f.source],
                }
                for f in self.figures
            ],
        }


def _figure(score: float, interval: tuple[float, float]) -> str:
    low, high = interval
    return f"{100 * score:.1f} ({100 * low:.1f}–{100 * high:.1f})"


def _times(result: Result) -> str:
    return f", {result.samples} answers each" if result.samples > 1 else ""


_ESCAPES = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--", "τ": r"$\tau$", "²": r"$^2$",
}  # fmt: skip


def _latex(cells: Sequence[str]) -> str:
    return " & ".join("".join(_ESCAPES.get(letter, letter) for letter in cell) for cell in cells) + r" \\"
