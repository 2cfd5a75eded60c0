"""Answers on disk as they come, appended and synced, so that a kill costs nothing answered.

One line is one unit: a JSON list of answers. So a unit is there whole or not at all.
"""

from __future__ import annotations

import dataclasses
import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spade_train.evaluation.question import Answer


class AnswerJournal:
    """Append-only file of answers. Threads may share it; processes may not, and the file is locked against it."""

    def __init__(self, path: str | Path) -> None:
        """Read what is there; a line that a kill cut in half is left out and mended over.

        Raises:
            OSError: if another process holds the file.
        """
        self._path = Path(path)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._file = self._path.open("a+b")
        _hold(self._file, self._path)
        self._file.seek(0)
        content = self._file.read()
        self._torn = bool(content) and not content.endswith(b"\n")
        self.answers: dict[tuple[str, int], Answer] = {}
        for line in content.decode("utf-8", "replace").splitlines():
            try:
                unit = [Answer(**entry) for entry in json.loads(line)]
            except (ValueError, TypeError, RecursionError):
                continue
            self.answers.update((answer.key, answer) for answer in unit)

    def put(self, answers: Sequence[Answer]) -> None:
        """Append the answers of one unit in one write; those that are errors are not kept."""
        kept = [answer for answer in answers if not answer.error]
        if not kept:
            return
        text = json.dumps([dataclasses.asdict(answer) for answer in kept], default=str) + "\n"
        with self._lock:
            self._file.write((b"\n" if self._torn else b"") + text.encode())
            self._torn = False
            self._file.flush()
            os.fsync(self._file.fileno())
            self.answers.update((answer.key, answer) for answer in kept)

    def close(self) -> None:
        """Close the file, and with it the lock."""
        self._file.close()


def _hold(file: Any, path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # Windows: two runs of the same evaluation at once are the user's care
        return
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise OSError(f"{path.parent} is in use by another evaluation; wait for it or take another --output") from error
