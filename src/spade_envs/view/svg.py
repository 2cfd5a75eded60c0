"""Plots as SVG text, made on the server: lines, bubbles, stacked bars. Colours are classes of the style sheet.

No plot needs a script; every one has a name for screen readers, and points that lead somewhere are links. All texts are
escaped here, since templates take the result as it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup, escape

WIDTH, HEIGHT = 420, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 10, 10, 36
_MOST_POINTS = 300  # of one line; more are averaged in equal groups

Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Line:
    """One curve: points (x, y) in ascending x. ``style`` is its number among the colours, 0 to 7."""

    label: str
    points: Sequence[tuple[float, float]]
    style: int = 0
    dashed: bool = False


class Bubble(NamedTuple):
    """One mark of a scatter plot."""

    x: float
    y: float
    radius: float  # in units of the picture
    label: str
    href: str
    style: str  # a class


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar made of parts: (class, size) from left to right."""

    label: str
    parts: Sequence[tuple[str, float]]
    href: str = ""


class _Frame:
    """Where values lie in the picture."""

    def __init__(self, x: Range, y: Range, height: int = HEIGHT, *, least: float = 0.0) -> None:
        """``least`` is the smallest distance of marks on the horizontal axis."""
        self.x, self.y, self.height, self.least = _widened(x), _widened(y), height, least

    def px(self, value: float) -> float:
        return round(_LEFT + (value - self.x[0]) / (self.x[1] - self.x[0]) * (WIDTH - _LEFT - _RIGHT), 1)

    def py(self, value: float) -> float:
        share = (value - self.y[0]) / (self.y[1] - self.y[0])
        return round(self.height - _BOTTOM - share * (self.height - _TOP - _BOTTOM), 1)

    def axes(self, x_label: str) -> Iterator[str]:
        right, bottom = WIDTH - _RIGHT, self.height - _BOTTOM
        for value in ticks(*self.y, 5):
            y = self.py(value)
            yield f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{y}" y2="{y}"/>'
            yield f'<text class="tick" text-anchor="end" x="{_LEFT - 5}" y="{y + 3.5}">{_tick(value)}</text>'
        for value in ticks(*self.x, 6, self.least):
            x = self.px(value)
            yield f'<text class="tick" text-anchor="middle" x="{x}" y="{bottom + 14}">{_tick(value)}</text>'
        yield f'<line class="axis" x1="{_LEFT}" x2="{right}" y1="{bottom}" y2="{bottom}"/>'
        middle = (_LEFT + right) / 2
        yield f'<text class="tick" text-anchor="middle" x="{middle}" y="{self.height - 6}">{escape(x_label)}</text>'

    def band(self, low: float, high: float, *, vertical: bool) -> str:
        if vertical:
            x, width = self.px(low), self.px(high) - self.px(low)
            return f'<rect class="band" x="{x}" y="{_TOP}" width="{width}" height="{self.height - _TOP - _BOTTOM}"/>'
        y, height = self.py(high), self.py(low) - self.py(high)
        return f'<rect class="band" x="{_LEFT}" y="{y}" width="{WIDTH - _LEFT - _RIGHT}" height="{height}"/>'


def line_plot(
    name: str, lines: Sequence[Line], *, x_label: str = "step", y_range: Range | None = None, band: Range | None = None
) -> Markup:
    """Return a plot of ``lines``: the values faint, their running mean strong. Without points it says so.

    Args:
        name: what the plot shows, for screen readers.
        lines: the curves.
        x_label: name of the horizontal axis.
        y_range: at least this part of the vertical axis is shown.
        band: a horizontal band to mark.
    """
    drawn = [Line(line.label, _finite(line.points), line.style, line.dashed) for line in lines]
    drawn = [line for line in drawn if line.points]
    if not drawn:
        return Markup('<p class="empty">nothing to draw yet</p>')
    xs = [x for line in drawn for x, _ in line.points]
    ys = [y for line in drawn for _, y in line.points] + list(y_range or ())
    frame = _Frame((min(xs), max(xs)), (min(ys), max(ys)), least=1.0)  # steps are whole
    parts = [frame.band(*band, vertical=False)] if band else []
    parts += frame.axes(x_label)
    for line in drawn:
        points = thinned(line.points, _MOST_POINTS)
        style = f"s{line.style % 8}"
        if len(points) == 1:
            x, y = points[0]
            parts.append(f'<circle class="{style} dot" cx="{frame.px(x)}" cy="{frame.py(y)}" r="3"/>')
            continue
        mean = running_mean([y for _, y in points], max(1, min(8, len(points) // 4)))
        smooth = [(x, y) for (x, _), y in zip(points, mean, strict=True)]
        for kind, path in (("faint", points), ("strong", smooth)):
            drawn_points = " ".join(f"{frame.px(x)},{frame.py(y)}" for x, y in path)
            dashed = " dashed" if line.dashed else ""
            parts.append(f'<polyline class="{style} {kind}{dashed}" points="{drawn_points}"/>')
    return _picture(name, parts, HEIGHT)


def bubble_plot(
    name: str,
    bubbles: Sequence[Bubble],
    *,
    x: Range,
    y: Range,
    x_label: str,
    band: Range | None = None,
    height: int = HEIGHT,
    axes: bool = True,
) -> Markup:
    """Return a scatter plot whose marks are links. ``band`` marks a range of the horizontal axis."""
    frame = _Frame(x, y, height)
    parts = [frame.band(*band, vertical=True)] if band else []
    if axes:
        parts += frame.axes(x_label)
    for one in bubbles:
        mark = (
            f'<circle class="{one.style}" cx="{frame.px(one.x)}" cy="{frame.py(one.y)}" r="{one.radius:.1f}">'
            f"<title>{escape(one.label)}</title></circle>"
        )
        parts.append(f'<a href="{escape(one.href)}" aria-label="{escape(one.label)}">{mark}</a>' if one.href else mark)
    return _picture(name, parts, height, interactive=True)


def stacked_bars(name: str, bars: Sequence[Bar], *, row: int = 24) -> Markup:
    """Return horizontal bars, one below the other, each with its label and its total."""
    largest = max((sum(size for _, size in bar.parts) for bar in bars), default=0.0) or 1.0
    left, width = 150, WIDTH - 150 - 44
    parts = []
    for index, bar in enumerate(bars):
        top = 4 + index * row
        label = escape(bar.label if len(bar.label) <= 24 else bar.label[:23] + "…")
        text = f'<text class="tick" text-anchor="end" x="{left - 6}" y="{top + row / 2 + 1}">{label}</text>'
        parts.append(f'<a href="{escape(bar.href)}">{text}</a>' if bar.href else text)
        x = float(left)
        for style, size in bar.parts:
            length = size / largest * width
            if size:
                parts.append(
                    f'<rect class="{style}" x="{x:.1f}" y="{top}" width="{max(0.5, length):.1f}" height="{row - 8}">'
                    f"<title>{escape(style)}: {size:g}</title></rect>"
                )
            x += length
        total = sum(size for _, size in bar.parts)
        parts.append(f'<text class="tick" x="{x + 5:.1f}" y="{top + row / 2 + 1}">{total:g}</text>')
    return _picture(name, parts, 8 + row * max(1, len(bars)), interactive=True)


def ticks(low: float, high: float, most: int, least: float = 0.0) -> list[float]:
    """Return up to ``most`` round values from ``low`` to ``high``, at least ``least`` apart."""
    step = 10.0 ** math.floor(math.log10((high - low) / most))
    step *= next(factor for factor in (1, 2, 5, 10, 20) if (high - low) / (step * factor) <= most)
    step = max(step, least)
    first = math.ceil(low / step - 1e-9)
    return [index * step for index in range(first, math.floor(high / step + 1e-9) + 1)]


def running_mean(values: Sequence[float], width: int) -> list[float]:
    """Return the mean of each value and up to ``width - 1`` before it."""
    sums, means = 0.0, []
    for index, value in enumerate(values):
        sums += value - (values[index - width] if index >= width else 0.0)
        means.append(sums / min(index + 1, width))
    return means


def thinned(points: Sequence[tuple[float, float]], most: int) -> list[tuple[float, float]]:
    """Return ``points``, or where there are more than ``most``, means of equal groups of neighbours."""
    if len(points) <= most:
        return list(points)
    size = -(-len(points) // most)
    groups = [points[start : start + size] for start in range(0, len(points), size)]
    return [(sum(x for x, _ in group) / len(group), sum(y for _, y in group) / len(group)) for group in groups]


def legend(styles: Mapping[str, str]) -> Markup:
    """Return the key of a plot: {label: classes}."""
    items = (
        f'<li><svg class="key" viewBox="0 0 16 12" aria-hidden="true">{_key(style)}</svg> {escape(label)}</li>'
        for label, style in styles.items()
    )
    return Markup(f'<ul class="legend">{"".join(items)}</ul>')


def _key(style: str) -> str:
    """A stroke for a line (classes s0 to s7), a dot for the rest."""
    if style[:1] == "s":
        return f'<line class="{escape(style)}" x1="0" x2="16" y1="6" y2="6"/>'
    return f'<circle class="{escape(style)}" cx="8" cy="6" r="5"/>'


def _picture(name: str, parts: Sequence[str], height: int, *, interactive: bool = False) -> Markup:
    role = "group" if interactive else "img"
    return Markup(
        f'<svg class="plot" role="{role}" aria-label="{escape(name)}" viewBox="0 0 {WIDTH} {height}">'
        f"{''.join(parts)}</svg>"
    )


def _finite(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    return [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y) and abs(x) < 1e300 and abs(y) < 1e300]


def _widened(ends: Range) -> Range:
    low, high = ends
    if high - low < 1e-9 * max(1.0, abs(low), abs(high)):
        half = max(0.5, abs(low) * 0.1)
        return low - half, high + half
    return low, high


def _tick(value: float) -> str:
    text = f"{value:.10g}" if abs(value) < 1e6 else f"{value:.3g}"
    return text.replace("-", "−")
