"""Replies of the round under way, on disk: paid for once, even if the run is killed before the round is stored.

A request with a seed is a question with one answer, so the request's hash is the key. The file is emptied when the
round is stored; a line that a kill cut in half is left out.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spade_envs.models.base import Completion, ToolCall


class ReplyJournal:
    """Completions by request, in a file of JSON lines. Threads may share it; processes may not."""

    def __init__(self, path: str | Path) -> None:
        """Read what an earlier process left in ``path``; the file is made when there is something to write."""
        self._path = Path(path)
        self._lock = threading.Lock()
        self._replies: dict[str, Completion] = {}
        if self._path.is_file():
            for line in self._path.read_text(encoding="utf-8", errors="replace").splitlines():
                try:
                    entry = json.loads(line)
                    values = entry["completion"]
                    calls = tuple(ToolCall(*call) for call in values.pop("tool_calls", ()))
                    self._replies[entry["key"]] = Completion(**values, tool_calls=calls)
                except (ValueError, KeyError, TypeError):
                    continue

    def __len__(self) -> int:
        return len(self._replies)

    @staticmethod
    def key(url: str, body: Mapping[str, Any]) -> str:
        """Return the key of a request: a hash of where it goes and all that it says."""
        text = json.dumps([url, body], sort_keys=True, ensure_ascii=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def get(self, key: str) -> Completion | None:
        """Return the reply to this request, if there is one."""
        with self._lock:
            return self._replies.get(key)

    def put(self, key: str, completion: Completion) -> None:
        """Keep a reply; a failed call is not one."""
        if completion.error:
            return
        line = json.dumps({"key": key, "completion": dataclasses.asdict(completion)})
        with self._lock:
            if key in self._replies:
                return
            self._replies[key] = completion
            self._path.parent.mkdir(parents=True, exist_ok=True)
            torn = self._path.is_file() and not self._ends_with_line()
            with self._path.open("a", encoding="utf-8") as file:
                file.write(("\n" if torn else "") + line + "\n")

    def _ends_with_line(self) -> bool:
        with self._path.open("rb") as file:
            file.seek(0, 2)
            if file.tell() == 0:
                return True
            file.seek(-1, 2)
            return file.read(1) == b"\n"

    def clear(self) -> None:
        """Forget everything: what was asked for is stored elsewhere now."""
        with self._lock:
            self._replies.clear()
            self._path.unlink(missing_ok=True)
