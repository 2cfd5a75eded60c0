"""The log of a run's attempts: JSON lines, appended and flushed one by one, without repeats after a resume."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import TracebackType

from spade_envs.designer.attempt import Attempt


class AttemptLog:
    """Appends attempts to a file; several runs may follow each other in one file."""

    def __init__(self, path: str | Path, run: str, next_round: int) -> None:
        """Open the log and drop what a killed run wrote about rounds that it will do again.

        Args:
            path: the file, made with its folder if it is not there.
            run: the run's name, a field of every line.
            next_round: lines of ``run`` from this round on are dropped, and so are torn lines.
        """
        self.path, self._run = Path(path), run
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._prune(next_round)
        self._file = self.path.open("a", encoding="utf-8")

    def write(self, attempt: Attempt) -> None:
        """Append one line and hand it to the operating system."""
        self._file.write(json.dumps({"run": self._run, **attempt.to_dict()}, ensure_ascii=False) + "\n")
        self._file.flush()

    def sync(self) -> None:
        """Force the lines to the disk."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> AttemptLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _prune(self, next_round: int) -> None:
        if not self.path.exists():
            return
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}.tmp")
        dropped = False
        with self.path.open("rb") as old, temporary.open("wb") as new:
            for line in old:
                if self._stale(line, next_round):
                    dropped = True
                else:
                    new.write(line)
        if dropped:
            os.replace(temporary, self.path)
        else:
            temporary.unlink()

    def _stale(self, line: bytes, next_round: int) -> bool:
        if not line.endswith(b"\n"):
            return True
        try:
            values = json.loads(line)
            return bool(values["run"] == self._run and values["round"] >= next_round)
        except (ValueError, KeyError, TypeError):
            return True
