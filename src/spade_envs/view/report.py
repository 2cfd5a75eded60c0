"""A run as one HTML file: the page of the run, its first and last programs and episodes, with the style inside."""

from __future__ import annotations

import os
from pathlib import Path

from markupsafe import Markup

from spade_envs.view.rendering import FOLDER, render
from spade_envs.view.run_files import EpisodePlace, Run
from spade_envs.view.run_panels import newest, quarters, sections
from spade_envs.view.transcript_lines import DesignLine, EpisodeLine, Placed, grouped

_DESIGNS = 6  # of the first and of the last step
_PAIRS = 3  # environments of the last step whose episodes are shown


def write_report(folder: Path, path: Path, *, baseline: Path | None = None) -> Path:
    """Write the run in ``folder`` to ``path`` and return that; ``baseline`` is another run, drawn in the same plots.

    Raises:
        ValueError: if the run has neither metrics nor transcripts yet.
    """
    runs = [Run(one) for one in (folder.resolve(), *([baseline.resolve()] if baseline else []))]
    for run in runs:
        run.update()
        run.transcripts.update()
    run = runs[0]
    steps = run.transcripts.steps()
    if not run.metrics and not steps:
        raise ValueError(f"{folder} holds neither metrics nor transcripts yet; nothing to report")
    text = render(
        "report.html.jinja",
        title=run.name,
        run=run,
        others=runs[1:],
        style=Markup((FOLDER / "static" / "view.css").read_text(encoding="utf-8")),
        newest=newest(run),
        quarters=quarters(run),
        alarms=run.alarms[::-1][:100],
        sections=sections(runs),
        designs=[(step, _designs(run, step)) for step in dict.fromkeys([steps[0], steps[-1]] if steps else [])],
        episodes=_episodes(run, steps[-1]) if steps else [],
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.tmp{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
    return path


def _designs(run: Run, step: int) -> list[Placed]:
    places = [one.place for one in run.transcripts.designs if one.step == step]
    lines = [DesignLine.of(run.transcripts.read(place), place) for place in places]
    return [one for _, group in grouped(lines) for one in group][:_DESIGNS]


def _episodes(run: Run, step: int) -> list[EpisodeLine]:
    """The first plain and hinted episode of a few environments, those whose hint helped most first."""
    pairs: dict[str, dict[bool, EpisodePlace]] = {}
    for one in run.transcripts.episodes:
        if one.step == step:
            pairs.setdefault(one.key, {}).setdefault(one.hinted, one)
    gain = {key: pair[True].return_ - pair[False].return_ if len(pair) == 2 else -3.0 for key, pair in pairs.items()}
    chosen = sorted(pairs, key=lambda key: -gain[key])[:_PAIRS]
    places = [place for key in chosen for _, place in sorted(pairs[key].items())]
    return [EpisodeLine.of(run.transcripts.read(place.place)) for place in places]
