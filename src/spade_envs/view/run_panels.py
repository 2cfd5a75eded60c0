"""Which curves a run's page shows, the roles apart. Metrics that a run did not write are passed over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup

from spade_envs.view.run_files import Run
from spade_envs.view.svg import Line, Range, legend, line_plot
from spade_envs.view.texts import shown


class Panel(NamedTuple):
    """One plot: its title, its curves as (metric, label), and ranges to mark or to show."""

    title: str
    curves: tuple[tuple[str, str], ...]
    y_range: Range | None = None
    band: Range | None = None


SHARE = (0.0, 1.0)
_MOST_CURVES = 6  # of a panel that draws all metrics of a kind
SECTIONS: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    (
        "Designer",
        (
            Panel(
                "Validity of programs",
                (
                    ("design/valid", "valid"),
                    ("design/duplicate", "repeats another"),
                    ("design/no_code", "no program"),
                    ("design/timeout", "too slow"),
                ),
                SHARE,
            ),
            Panel("Reward", (("design/reward", "mean reward"),), SHARE),
            Panel("Regret of new environments", (("environment/regret", "hinted − plain"),), (-0.25, 1.0)),
            Panel(
                "Return on new environments",
                (("environment/plain_return", "plain"), ("environment/hinted_return", "hinted")),
                SHARE,
            ),
            Panel(
                "Learnable share (win rate 0.2 to 0.8)",
                (("environment/learnable", "new"), ("replay/learnable", "replayed")),
                SHARE,
            ),
            Panel(
                "Diversity (Vendi score / n)",
                (("diversity/designs", "programs of a cycle"), ("diversity/memory", "memory")),
                SHARE,
            ),
            Panel(
                "Bands of new environments",
                (
                    ("environment/hopeless", "hopeless"),
                    ("environment/learnable", "learnable"),
                    ("environment/mastered", "mastered"),
                ),
                SHARE,
            ),
            Panel("Causes of refusal (programs)", (("refused/*", ""),)),
            Panel(
                "Hints",
                (("hint/answer", "hold the answer"), ("hint/refused", "refused"), ("hint/repeated", "repeated")),
                SHARE,
            ),
            Panel("Length of programs", (("design/tokens", "tokens"),)),
            Panel("Spread of advantages", (("advantage/designer_std", "standard deviation"),), (0.0, 1.0)),
        ),
    ),
    (
        "Agent",
        (
            Panel("Return", (("episode/return", "plain episodes"), ("replay/plain_return", "replayed")), SHARE),
            Panel(
                "Win rate",
                (("environment/win_rate", "new environments"), ("replay/win_rate", "replayed")),
                SHARE,
                (0.2, 0.8),
            ),
            Panel("Held-out success", (("heldout/success", "success"),), SHARE),
            Panel("Ends of episodes", (("stop/*", ""),)),
            Panel("Turns of an episode", (("episode/turns", "turns"),)),
            Panel("Length of an episode", (("episode/tokens", "tokens"),)),
            Panel(
                "Spread of advantages",
                (("advantage/agent_std", "standard deviation"), ("advantage/agent_zero_share", "share without any")),
                (0.0, 1.0),
            ),
        ),
    ),
    (
        "Update",
        (
            Panel("KL to the reference", (("kl", "KL"),)),
            Panel("Entropy", (("entropy", "entropy"),)),
            Panel("Loss", (("loss", "loss"),)),
            Panel("Gradient norm", (("grad_norm", "norm"),)),
            Panel("Learning rate", (("learning_rate", "rate"),)),
            Panel("Clipped ratios", (("clip_ratio/region_mean", "share"),)),
        ),
    ),
    (
        "Speed",
        (
            Panel(
                "Seconds of a step",
                (
                    ("step_time", "step"),
                    ("seconds/design", "write"),
                    ("seconds/admit", "validate"),
                    ("seconds/play", "play"),
                    ("seconds/update", "update"),
                ),
            ),
            Panel("Tokens sampled in a second", (("tokens a second", "of a step's time"),)),
            Panel(
                "Episodes lost in the sandbox",
                (("sandbox/died", "died"), ("sandbox/timeout", "too slow"), ("sandbox/quarantined", "quarantined")),
                SHARE,
            ),
            Panel(
                "Tokens sampled",
                (("tokens/designer", "designer"), ("tokens/agent", "agent"), ("tokens/hinted", "hinted, not trained")),
            ),
        ),
    ),
)
"""Sections of the page with their panels."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """One plot with its title and key."""

    title: str
    plot: Markup
    key: Markup


def sections(runs: Sequence[Run]) -> list[tuple[str, list[Drawn]]]:
    """Return the plots of one run, or of two over each other (the second one dashed), by section."""
    found = []
    for title, panels in SECTIONS:
        drawn = [one for panel in panels if (one := _drawn(panel, runs)) is not None]
        if drawn:
            found.append((title, drawn))
    return found


def every_metric(run: Run) -> list[Drawn]:
    """Return one small plot for each metric of a run."""
    return [
        Drawn(shown(key, 80), line_plot(shown(key, 80), [Line(key, run.series(key))]), Markup(""))
        for key in run.metric_names()[:300]
    ]


def newest(run: Run) -> list[tuple[str, float]]:
    """Return the figures of a run's last step that its head shows."""
    last = run.metrics[-1] if run.metrics else {}
    wanted = (
        ("return", "episode/return"),
        ("regret", "environment/regret"),
        ("valid designs", "design/valid"),
        ("learnable", "environment/learnable"),
        ("KL", "kl"),
        ("seconds a step", "step_time"),
    )
    return [(label, last[key]) for label, key in wanted if isinstance(last.get(key), int | float)]


def quarters(run: Run) -> list[tuple[str, float, float]]:
    """Return (name, mean of the first quarter of the steps, of the last one) of what the sections show."""
    found = []
    for section, panels in SECTIONS:
        for panel in panels:
            for key, label in _curves(panel, [run]):
                values = [value for _, value in run.series(key)]
                width = max(1, len(values) // 4)
                if values:
                    name = f"{section}: {panel.title[0].lower()}{panel.title[1:]}, {label}"
                    found.append((name, sum(values[:width]) / width, sum(values[-width:]) / width))
    return found


def _curves(panel: Panel, runs: Sequence[Run]) -> list[tuple[str, str]]:
    """The curves of a panel; a name that ends in a star stands for the metrics with that beginning, largest first."""
    found = []
    for key, label in panel.curves:
        start = key.removesuffix("*")
        if start == key:
            found.append((key, label))
            continue
        names = {name for run in runs for name in run.metric_names() if name.startswith(start)}
        sums = {name: sum(value for run in runs for _, value in run.series(name)) for name in names}
        largest = sorted(names, key=lambda name: (-sums[name], name))[:_MOST_CURVES]
        found += [(name, shown(name.removeprefix(start), 40)) for name in largest]
    return found


def _drawn(panel: Panel, runs: Sequence[Run]) -> Drawn | None:
    lines = [
        Line(label if len(runs) < 2 else f"{label}, {run.name}", points, style, dashed=which > 0)
        for which, run in enumerate(runs)
        for style, (key, label) in enumerate(_curves(panel, runs))
        if (points := run.series(key))
    ]
    if not lines:
        return None
    key = legend({shown(line.label, 60): f"s{line.style}{' dashed' if line.dashed else ''}" for line in lines})
    return Drawn(panel.title, line_plot(panel.title, lines, y_range=panel.y_range, band=panel.band), key)
