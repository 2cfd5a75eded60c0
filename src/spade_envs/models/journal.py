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


def _completion(values: dict[str, Any]) -> Completion:
    calls = tuple(ToolCall(*(_is(part, str) for part in _is(call, list))) for call in values.pop("tool_calls", ()))
    found = Completion(**values, tool_calls=calls)
    _is(found.text, str)
    if _is(found.prompt_tokens, int) < 0 or _is(found.completion_tokens, int) < 0 or found.error:
        raise ValueError("no reply")
    if found.finish_reason not in ("stop", "length"):
        raise ValueError("no reply")
    return found


def _is(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise TypeError(kind.__name__)
    return value


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
                    self._replies[_is(entry["key"], str)] = _completion(_is(entry["completion"], dict))
                except (ValueError, KeyError, TypeError, RecursionError):
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
