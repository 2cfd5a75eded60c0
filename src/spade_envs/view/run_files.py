"""A run's folder as the files that a training run leaves, read as they grow; nothing of the trainer is needed.

Lines are read once: what was read is remembered by its place in the file, and a file that became shorter or was
replaced (a resumed run takes steps back) is read anew. A last line without its end is left for later.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

METRICS, TRANSCRIPTS, ALARMS = "metrics.jsonl", "transcripts.jsonl", "alarms.jsonl"
MEMORY = "memory/memory.sqlite"
_LONGEST = 64 << 20  # bytes of one line; a longer one is passed over


class Growing:
    """A file of JSON lines that another process appends to; ``take`` gets each object with its place once."""

    def __init__(self, path: Path, take: Callable[[int, Mapping[str, Any]], None], reset: Callable[[], None]) -> None:
        self.path = path
        self._take, self._reset = take, reset
        self._end = 0
        self._file = (0, 0)  # device and inode
        self._head = b""

    def update(self) -> None:
        """Read what is new."""
        try:
            with self.path.open("rb") as file:
                self._read(file)
        except FileNotFoundError:
            self._again()

    def _read(self, file: Any) -> None:
        status = os.fstat(file.fileno())
        head = file.read(min(256, self._end))
        if (status.st_dev, status.st_ino) != self._file or status.st_size < self._end or head != self._head:
            self._again()
            self._file = (status.st_dev, status.st_ino)
        file.seek(self._end)
        while line := file.readline(_LONGEST):
            if not line.endswith(b"\n"):
                if len(line) < _LONGEST:
                    break  # not written to its end yet
                while line and not line.endswith(b"\n"):
                    line = file.readline(_LONGEST)
                self._end = file.tell()
                continue
            place, self._end = self._end, self._end + len(line)
            value = parsed(line)
            if value is not None:
                self._take(place, value)
        file.seek(0)
        self._head = file.read(min(256, self._end))

    def _again(self) -> None:
        if self._end:
            self._reset()
        self._end, self._head = 0, b""


class DesignPlace(NamedTuple):
    """Where a written program stands in the transcripts."""

    place: int
    step: int
    id: str


class EpisodePlace(NamedTuple):
    """Where an episode stands in a file of transcripts, with what a list of episodes shows."""

    place: int
    step: int
    key: str
    hinted: bool
    seed: int
    turns: int
    return_: float
    stop: str


class Transcripts:
    """Programs and episodes in a file of JSON lines, by step and by environment. Threads may share one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.designs: list[DesignPlace] = []
        self.episodes: list[EpisodePlace] = []
        self._lock = threading.Lock()
        self._growing = Growing(path, self._take, self._reset)

    def update(self) -> None:
        """Read what is new in the file."""
        with self._lock:
            self._growing.update()

    def steps(self) -> list[int]:
        """Return the steps that have programs or episodes, ascending."""
        return sorted({one.step for one in self.designs} | {one.step for one in self.episodes})

    def read(self, place: int) -> dict[str, Any]:
        """Return the line at ``place``.

        Raises:
            LookupError: if none begins there.
        """
        try:
            with self.path.open("rb") as file:
                if not 0 <= place < os.fstat(file.fileno()).st_size:
                    raise LookupError(f"no line of {self.path.name} begins at {place}")
                if place > 0:
                    file.seek(place - 1)
                    if file.read(1) != b"\n":
                        raise LookupError(f"no line of {self.path.name} begins at {place}")
                value = parsed(file.readline(_LONGEST))
        except OSError as error:
            raise LookupError(f"{self.path.name} cannot be read: {error.strerror}") from error
        if value is None:
            raise LookupError(f"no line of {self.path.name} begins at {place}")
        return dict(value)

    def _reset(self) -> None:
        self.designs, self.episodes = [], []

    def _take(self, place: int, line: Mapping[str, Any]) -> None:
        step = whole(line.get("step"))
        if line.get("type") == "design":
            self.designs.append(DesignPlace(place, step, str(line.get("id") or "")))
        elif isinstance(line.get("messages"), list):
            self.episodes.append(
                EpisodePlace(
                    place,
                    step,
                    str(line.get("key") or ""),
                    bool(line.get("hinted") or line.get("hint")),
                    whole(line.get("seed")),
                    whole(line.get("turns")),
                    real(line.get("return")),
                    str(line.get("stop") or ""),
                )
            )


class Run:
    """One run folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.metrics: list[dict[str, Any]] = []
        self.alarms: list[dict[str, Any]] = []
        self.transcripts = Transcripts(folder / TRANSCRIPTS)
        self._lock = threading.Lock()
        self._files = (
            Growing(folder / METRICS, self._take_metrics, lambda: self.metrics.clear()),
            Growing(folder / ALARMS, self._take_alarm, lambda: self.alarms.clear()),
        )

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.name or str(self.folder)

    def update(self) -> None:
        """Read what is new in metrics and alarms; the transcripts have an update of their own."""
        with self._lock:
            for file in self._files:
                file.update()

    def series(self, key: str) -> list[tuple[float, float]]:
        """Return (step, value) of a metric; "tokens a second" is what was sampled in the time of a step."""
        if key == "tokens a second":
            return [(line["step"], speed) for line in self.metrics if (speed := _speed(line)) is not None]
        return [(line["step"], real(line[key])) for line in self.metrics if isinstance(line.get(key), int | float)]

    def metric_names(self) -> list[str]:
        """Return the names of all metrics, sorted."""
        names: set[str] = set()
        for line in self.metrics:
            names.update(name for name, value in line.items() if isinstance(value, int | float))
        return sorted(names - {"step"})

    def _take_metrics(self, place: int, line: Mapping[str, Any]) -> None:
        if isinstance(line.get("step"), int):
            self.metrics.append(dict(line))

    def _take_alarm(self, place: int, line: Mapping[str, Any]) -> None:
        self.alarms.append(dict(line))


def _speed(line: Mapping[str, Any]) -> float | None:
    seconds = real(line.get("step_time"))
    tokens = sum(real(value) for name, value in line.items() if name.startswith("tokens/"))
    return tokens / seconds if seconds > 0 and tokens > 0 else None


def is_run(folder: Path) -> bool:
    """Whether ``folder`` holds what a run leaves, also one that has only begun."""
    return any((folder / name).is_file() for name in (METRICS, TRANSCRIPTS, ALARMS, "spade_start.json", MEMORY))


def parsed(line: bytes) -> Mapping[str, Any] | None:
    """Return the JSON object on a line, None if it is none."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def whole(value: Any) -> int:
    """Return a whole number from a file, 0 where there is none."""
    return value if isinstance(value, int) and abs(value) < 2**63 else 0


def real(value: Any) -> float:
    """Return a number from a file, 0 where there is none."""
    return float(value) if isinstance(value, int | float) and abs(value) < 1e300 else 0.0
