"""What all commands share: consoles, one-line failure, JSON output, progress on a terminal or plain lines."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import indent
from typing import Annotated, Any, NoReturn, Protocol

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from spade_envs.terminal import visible

out = Console(highlight=False, soft_wrap=True, emoji=False)
err = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)

MemoryOption = Annotated[
    Path | None,
    typer.Option("--memory", "-m", help="Folder of the memory. Default: $SPADE_HOME, else the user's data folder."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]
AllowOption = Annotated[
    list[str] | None, typer.Option("--allow", help="Opt-in module that the programs may import: numpy.")
]
ToolsOption = Annotated[
    str,
    typer.Option(
        "--tools",
        help="How a model gets tools: native (its interface or chat template), text (in the system prompt), auto.",
    ),
]
IsolationOption = Annotated[
    str,
    typer.Option(
        "--isolation",
        help="Lowest isolation to accept for generated code: full, wasi; partial and static are risks.",
    ),
]


def fail(message: str, *, code: int = 2) -> NoReturn:
    """Print ``message`` as an error and leave with ``code`` (2: could not run)."""
    err.print(f"[bold red]error:[/] {shown(message)}")
    sys.exit(code)


def plainly(error: Exception) -> str:
    """Return what an error says to a person: without its type, number and quotes."""
    if isinstance(error, KeyError) and error.args:
        return str(error.args[0])
    if isinstance(error, OSError) and error.strerror:  # else "[Errno 2] No such file or directory: 'x'"
        names = [str(name) for name in (error.filename, error.filename2) if name is not None]
        return ": ".join([" → ".join(names), error.strerror]) if names else error.strerror
    return str(error) or type(error).__name__


def print_json(value: Any) -> None:
    """Print one JSON document on standard output, unwrapped and uncoloured, whatever its encoding can say."""
    sys.stdout.write(_json(value) + "\n")


@contextmanager
def json_list() -> Iterator[Callable[[Any], None]]:
    """Print one JSON list on standard output, entry by entry as they are given; it is closed whatever happens."""
    count = 0

    def write(value: Any) -> None:
        nonlocal count
        sys.stdout.write((",\n" if count else "[\n") + indent(_json(value), "  "))
        sys.stdout.flush()
        count += 1

    try:
        yield write
    finally:
        if count:
            sys.stdout.write("\n]\n")


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=2, default=str)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:  # an ASCII terminal, or a file name that is not UTF-8
        text = json.dumps(value, indent=2, default=str)
    return text


def print_table(table: Table) -> None:
    """Print it as wide as it is: a terminal may wrap a long row, but an id or a number is never cut."""
    width = out.measure(table, options=out.options.update(width=1000)).maximum
    Console(highlight=False, soft_wrap=True, emoji=False, width=max(out.width, width)).print(table)


def check_isolation(level: str) -> Any:
    """Return ``level`` if it is an isolation level.

    Raises:
        ValueError: otherwise, naming the levels.
    """
    if level not in ("full", "wasi", "partial", "static"):
        raise ValueError(f"--isolation must be full, wasi, partial or static, got {level!r}")
    return level


def opt_in(allow: list[str] | None) -> tuple[str, ...]:
    """Return what ``--allow`` names, each once.

    Raises:
        ValueError: if it names anything but an opt-in module.
    """
    from spade_envs.sandbox.allowlist import OPTIONAL

    if unknown := sorted(set(allow or ()) - set(OPTIONAL)):
        raise ValueError(f"--allow takes {', '.join(sorted(OPTIONAL))}, got {', '.join(unknown)}")
    return tuple(dict.fromkeys(allow or ()))


def tools_mode(asked: str, model: Any) -> Any:
    """Return "text" or "native" for ``--tools``; "auto" is native where the model takes tools.

    Raises:
        ValueError: if it is none of the three.
    """
    if asked not in ("auto", "text", "native"):
        raise ValueError(f"--tools must be auto, text or native, got {asked!r}")
    if asked != "auto":
        return asked
    return "native" if getattr(model, "native_tools", False) else "text"


def shown(text: str, limit: int = 0) -> str:
    """Return untrusted ``text`` made safe for a terminal: control characters visible, markup inert, cut."""
    return escape(_cut(text, limit))


def _cut(text: str, limit: int) -> str:
    clean = visible(text)
    return clean[: limit - 1] + "…" if limit and len(clean) > limit else clean


class Advance(Protocol):
    """Move a progress display: ``done`` of the total so far, with a few words."""

    def __call__(self, done: int, words: str = "") -> None: ...


_MINUTE = 60.0  # seconds without a line after which a long task says how it is, where there is no bar


@contextmanager
def progress(title: str, total: int | None, *, every: float = 0.1) -> Iterator[Advance]:
    """Show a progress bar on a terminal, else a plain line at each ``every``-th share of the total, or each minute."""
    if err.is_terminal:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[words]}", markup=False),  # with markup, ":m:" would become a picture
        )
        with Progress(*columns, console=err, transient=False) as bar:
            task = bar.add_task(title, total=total, words="")
            yield lambda done, words="": bar.update(task, completed=done, words=_cut(words, 60))
        return
    last, said, at = -1, "", 0.0

    def plain(done: int, words: str = "") -> None:
        nonlocal last, said, at
        mark, now = int(done / (total * every)) if total else done, time.monotonic()
        if mark > last or (words != said and now - at >= _MINUTE):
            last, said, at = max(mark, last), words, now
            err.print(f"{title}: {done}" + (f"/{total}" if total else "") + (f" {shown(words, 100)}" if words else ""))

    yield plain
