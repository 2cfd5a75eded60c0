"""What a person sees of a run of generation while it goes on, and the events that a program may follow."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from spade_envs.cli.console import err, shown

if TYPE_CHECKING:
    from spade_envs.designer.attempt import Attempt
    from spade_envs.designer.summary import GenerateSummary
    from spade_envs.models.usage import Usage

_REASONS = 6  # refusals are listed by so many causes
_PLAIN_EVERY = 0.1  # of the count, where standard error is no terminal


class RunDisplay:
    """A table that lives on a terminal; elsewhere a plain line at every tenth of the count."""

    def __init__(self, count: int, admitted: int, usage: Usage | None) -> None:
        """Prepare the display.

        Args:
            count: environments wanted.
            admitted: of these, there already.
            usage: of an endpoint, for what is under way; None for a model that counts nothing.
        """
        self._count, self._before, self._admitted, self._usage = count, admitted, admitted, usage
        self._attempts = self._tokens = self._repaired = 0
        self._causes: Counter[str] = Counter()
        self._started = time.monotonic()
        self._last_mark = int(admitted / (count * _PLAIN_EVERY))
        columns = TextColumn("generate"), BarColumn(), MofNCompleteColumn()
        self._bar = Progress(*columns, console=err)
        self._task = self._bar.add_task("generate", total=count, completed=admitted)
        self._live = Live(get_renderable=self._render, console=err, refresh_per_second=2) if err.is_terminal else None

    def __enter__(self) -> RunDisplay:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def note(self, attempt: Attempt) -> None:
        """Count an attempt."""
        self._attempts += 1
        self._tokens += attempt.tokens
        self._causes[attempt.cause] += 1
        self._admitted += attempt.status == "admitted"
        self._repaired += attempt.status == "admitted" and bool(attempt.earlier)
        self._bar.update(self._task, completed=self._admitted)
        if self._live is None:
            self._plain(attempt)

    def facts(self) -> dict[str, str]:
        """Return what the table says, by row."""
        elapsed = max(1e-9, time.monotonic() - self._started)
        tokens = self._usage.completion_tokens if self._usage is not None else self._tokens
        new = self._admitted - self._before
        rows = {"attempts": f"{self._attempts} ({self._repaired} repaired)", "refused": self._refusals() or "none"}
        rows["duplicates"] = str(self._causes["duplicate"])
        rows["tokens"] = f"{tokens} ({tokens / elapsed:.0f}/s)"
        if self._usage is not None:
            rows["requests"] = (
                f"{self._usage.requests} ({self._usage.retries} again, {self._usage.throttled} throttled)"
            )
            rows["cost"] = f"{self._usage.cost:.4f}" if self._usage.cost else "not known (give --prices)"
        left = (self._count - self._admitted) * elapsed / new if new else None
        rows["time"] = f"{_clock(elapsed)}, " + ("no estimate yet" if left is None else f"about {_clock(left)} left")
        return rows

    def _refusals(self) -> str:
        skipped = ("admitted", "surplus", "duplicate")
        return ", ".join(
            f"{cause} {number}" for cause, number in self._causes.most_common() if cause not in skipped
        )  # fmt: skip

    def _render(self) -> Group:
        table = Table(box=None, show_header=False, pad_edge=False)
        for name, words in self.facts().items():
            table.add_row(f"[dim]{name}[/]", shown(words, 200))
        return Group(self._bar, table)

    def _plain(self, attempt: Attempt) -> None:
        mark = int(self._admitted / (self._count * _PLAIN_EVERY))
        if mark > self._last_mark:
            self._last_mark = mark
            rate = self.facts()["tokens"]
            words = f"{self._attempts} attempts, {rate} tokens"
            err.print(f"generate: {self._admitted}/{self._count} {shown(words)}")


class EventLog:
    """JSON lines of what happens to a run: start, every stored round, end or error."""

    def __init__(self, path: Path, run: str) -> None:
        """Append to ``path``, which is made with its folder if it is not there."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path, self._run = path, run

    def write(self, event: str, **facts: Any) -> None:
        """Append one event; times are Unix seconds."""
        line = json.dumps({"at": round(time.time(), 3), "run": self._run, "event": event, **facts}, default=str)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def round(self, summary: GenerateSummary) -> None:
        """Append what has been stored so far."""
        facts = summary.to_dict()
        keys = ("admitted", "attempts", "rounds", "causes", "prompt_tokens", "completion_tokens", "hint_tokens",
                "cost", "first_validity", "final_validity")  # fmt: skip
        self.write("round", **{key: facts[key] for key in keys})


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
