"""Pictures of a memory: how hard its environments are, by skill and over time, and which lie near each other."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from spade_envs.memory import Memory
from spade_envs.memory.overview import Entry
from spade_envs.view.listing import LEARNABLE, Query, choice, standing
from spade_envs.view.projection import project
from spade_envs.view.svg import Bar, Bubble, Line, bubble_plot, legend, line_plot, stacked_bars
from spade_envs.view.texts import number, shown

_CELL = 0.05  # of win rate and regret that one bubble stands for
_SKILLS = 20
_MOMENTS = 60  # of the plot over time
_DOTS = 2_500  # on the map; more are thinned evenly
BANDS = {"hopeless": "b-hopeless", "learnable": "b-learnable", "mastered": "b-mastered", "unplayed": "b-unplayed"}


def distributions(entries: Sequence[Entry], query: Query) -> dict[str, Markup]:
    """Return the plots of the page of distributions by name. Marks lead to the table of what they stand for."""
    return {
        "plane": _plane(entries, query),
        "skills": _skills(entries, query),
        "time": _time(entries),
        "bands": legend({**BANDS}),
    }


def memory_map(memory: Memory, entries: Sequence[Entry]) -> dict[str, Any]:
    """Return the map of these entries with its key, how many are drawn, and the share of variance it holds."""
    ids, vectors = memory.vectors()
    known = {entry.id: entry for entry in entries}
    places = [place for place, id in enumerate(ids) if id in known]
    points, share = project(vectors[places])
    stride = -(-len(places) // _DOTS) or 1
    dots = []
    for index in range(0, len(places), stride):
        entry = known[ids[places[index]]]
        regret = entry.statistics.regret
        label = f"{entry.env_id} · {shown(entry.skill, 40) or 'no skill'} · regret {number(regret)}"
        style = regret_class(regret)
        dots.append(
            Bubble(float(points[index, 0]), float(points[index, 1]), 3.2, label, f"../environment/{entry.id}", style)
        )
    key = {
        "no regret known": "r-none",
        "below 0": "r-0",
        "0 to 0.1": "r-1",
        "0.1 to 0.3": "r-2",
        "0.3 to 0.6": "r-3",
        "above 0.6": "r-4",
    }
    if not dots:
        return {"picture": Markup('<p class="empty">nothing to draw</p>'), "key": "", "drawn": 0, "share": 0.0}
    xs, ys = [dot.x for dot in dots], [dot.y for dot in dots]
    picture = bubble_plot(
        "Map of the memory", dots, x=(min(xs), max(xs)), y=(min(ys), max(ys)), x_label="", height=330, axes=False
    )
    return {"picture": picture, "key": legend(key), "drawn": len(dots), "share": share}


def regret_class(regret: float | None) -> str:
    """Return the colour class of a regret."""
    if regret is None:
        return "r-none"
    return f"r-{sum(regret >= bound for bound in (0.0, 0.1, 0.3, 0.6))}"


def _plane(entries: Sequence[Entry], query: Query) -> Markup:
    cells: Counter[tuple[int, int]] = Counter()
    for entry in entries:
        rate, regret = entry.statistics.win_rate, entry.statistics.regret
        if rate is not None and regret is not None:
            cells[round(rate / _CELL), round(regret / _CELL)] += 1
    if not cells:
        return Markup('<p class="empty">none of these was played with and without its hint</p>')
    largest = max(cells.values())
    half = _CELL / 2
    bubbles = []
    for (column, row), count in sorted(cells.items(), key=lambda item: -item[1]):
        rate, regret = column * _CELL, row * _CELL
        ends = {
            "win_from": round(rate - half, 4),
            "win_to": round(rate + half, 4),
            "regret_from": round(regret - half, 4),
            "regret_to": round(regret + half, 4),
        }
        label = f"{count} with win rate {number(rate)} and regret {number(regret)}"
        radius = 2.5 + 8.0 * (count / largest) ** 0.5
        href = f"../pool?{query.address(page=1, **ends)}"
        bubbles.append(Bubble(rate, regret, radius, label, href, "bubble"))
    low = min(-0.25, min(row for _, row in cells) * _CELL)
    return bubble_plot(
        "Regret by win rate; the learnable band is marked",
        bubbles,
        x=(-0.03, 1.03),
        y=(low, 1.03),
        x_label="win rate without the hint",
        band=LEARNABLE,
    )


def _skills(entries: Sequence[Entry], query: Query) -> Markup:
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for entry in entries:
        counts[entry.skill][standing(entry)] += 1
    largest = sorted(counts, key=lambda skill: (-counts[skill].total(), skill))[:_SKILLS]
    bars = [
        Bar(
            shown(skill, 60) or "(no skill)",
            [(style, counts[skill][band]) for band, style in BANDS.items()],
            f"../pool?{query.address(skill=choice(skill), page=1)}" if skill else "",
        )
        for skill in largest
    ]
    return stacked_bars("Environments by skill and band of the win rate", bars)


def _time(entries: Sequence[Entry]) -> Markup:
    """Shares in groups of equal size, in the order of arrival."""
    ordered = sorted(entries, key=lambda entry: entry.seq)
    size = max(1, -(-len(ordered) // _MOMENTS))
    series: dict[str, list[tuple[float, float]]] = {"win rate": [], "regret": [], "learnable share": []}
    for start in range(0, len(ordered), size):
        group = ordered[start : start + size]
        rates = [rate for entry in group if (rate := entry.statistics.win_rate) is not None]
        regrets = [regret for entry in group if (regret := entry.statistics.regret) is not None]
        at = float(start + len(group))
        if rates:
            series["win rate"].append((at, sum(rates) / len(rates)))
            learnable = sum(LEARNABLE[0] <= rate <= LEARNABLE[1] for rate in rates)
            series["learnable share"].append((at, learnable / len(rates)))
        if regrets:
            series["regret"].append((at, sum(regrets) / len(regrets)))
    lines = [Line(label, points, style) for style, (label, points) in enumerate(series.items())]
    plot = line_plot(
        "Win rate, regret and learnable share by arrival", lines, x_label="order of arrival", y_range=(0, 1)
    )
    return plot + legend({line.label: f"s{line.style}" for line in lines})
