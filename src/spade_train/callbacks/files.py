"""Files of a run folder: lines that are appended, and files that are replaced whole."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write JSON so that a reader sees the old file or the new one, even after a crash."""
    temporary = path.with_name(f"{path.name}.tmp")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk; file systems that cannot do it are left as they are."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # pragma: no cover - Windows cannot open a folder
        return
    try:
        os.fsync(handle)
    except OSError:  # pragma: no cover - some network file systems
        pass
    finally:
        os.close(handle)


def append_lines(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    """Append one line of JSON for each mapping."""
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def whole_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines; the last one is passed over if a kill cut it."""
    if not path.is_file():
        return
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.endswith("\n"):
                yield json.loads(line)


def keep_steps(path: Path, step: int) -> None:
    """Drop the lines of steps after ``step``: they will be run again."""
    if not path.is_file():
        return
    kept = [line for line in whole_lines(path) if line["step"] <= step]
    temporary = path.with_name(f"{path.name}.tmp")
    temporary.unlink(missing_ok=True)
    append_lines(temporary, kept)
    temporary.replace(path)
