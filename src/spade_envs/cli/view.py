"""``spade view`` and ``spade report``: a memory and runs in the browser, a run as one file."""

from __future__ import annotations

import tempfile
import webbrowser
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from spade_envs.cli.console import (
    IsolationOption,
    JsonOption,
    MemoryOption,
    check_isolation,
    err,
    out,
    print_json,
    shown,
)
from spade_envs.memory import Memory
from spade_envs.view.run_files import MEMORY, METRICS, TRANSCRIPTS, is_run

RunOption = Annotated[
    list[Path] | None, typer.Option("--run", "-r", help="Run folder; may be given several times, to compare.")
]


def view(
    memory: MemoryOption = None,
    run: RunOption = None,
    episodes: Annotated[
        list[Path] | None,
        typer.Option("--episodes", help="Transcripts to replay, as spade calibrate --transcripts writes them."),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on the loopback; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the address in a browser.")] = True,
    isolation: IsolationOption = "full",
    as_json: JsonOption = False,
) -> None:
    """Look at environments, play them, and watch training runs in the browser. Ctrl-C ends it.

    Listens on this machine only; the address has a secret in it. With --run alone the run's own memory is shown.

    Example: `spade view --memory runs/nano/memory --run runs/nano`
    """
    level, runs = check_isolation(isolation), _runs(run or [])
    for path in episodes or []:
        if not path.is_file():
            raise ValueError(f"no file {path}: expected transcripts, as spade calibrate --transcripts writes them")
    try:
        from spade_envs.view.server import serve
        from spade_envs.view.state import View
    except ImportError as error:
        raise ValueError(f"{error}. The browser view needs more packages: pip install 'spade-envs[viewer]'") from error
    folder = memory or next(((one / MEMORY).parent for one in runs if (one / MEMORY).is_file()), None)
    opened = None if folder is None and runs else Memory.open(folder, read_only=True)

    def ready(address: str) -> None:
        if as_json:
            print_json({"address": address})
        else:
            out.print(f"{shown(address)}\nThe address is a secret: whoever has it can look and play. Ctrl-C ends it.")
        if browser and not opened_in_browser(address, stack) and not as_json:
            err.print("no browser was found here; open the address yourself")

    with ExitStack() as stack, View(opened, runs, episodes or [], isolation=level) as shown_view:
        serve(shown_view, port=port, ready=ready)


def opened_in_browser(address: str, stack: ExitStack) -> bool:
    """Open ``address`` by way of a file that only this user can read: command lines are seen by all users."""
    handle, name = tempfile.mkstemp(prefix="spade-view-", suffix=".html")
    stack.callback(Path(name).unlink, missing_ok=True)
    with open(handle, "w", encoding="utf-8") as file:
        file.write(
            f'<!doctype html><meta http-equiv="refresh" content="0; url={address}"><a href="{address}">spade</a>'
        )
    return webbrowser.open(Path(name).as_uri())


def report(
    run: Annotated[Path, typer.Option("--run", "-r", help="Run folder.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File; default: report.html in the run.")
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option("--compare", help="Another run folder, drawn dashed in the same plots.")
    ] = None,
) -> None:
    """Write a training run as one HTML file that opens without a network: curves, alarms, programs, episodes.

    Example: `spade report --run runs/nano --output nano.html`
    """
    from spade_envs.view.report import write_report

    _runs([run, *([baseline] if baseline else [])])
    path = write_report(run, output or run / "report.html", baseline=baseline)
    out.print(shown(str(path)))


def _runs(folders: list[Path]) -> list[Path]:
    """Return the run folders as they are.

    Raises:
        ValueError: if one is none.
    """
    for folder in folders:
        if not folder.is_dir():
            raise ValueError(f"no folder {folder}: expected what spade train wrote; a run makes it as it begins")
        if not is_run(folder) and any(folder.iterdir()):
            raise ValueError(f"{folder} is not a run: expected {METRICS} or {TRANSCRIPTS} in it (or an empty folder)")
    return [folder.resolve() for folder in folders]
