"""Finding programs in files and folders."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

SUFFIXES = (".py", ".json", ".jsonl")
_FIELDS = ("source", "code", "text")


def collect_sources(paths: Iterable[str | Path]) -> list[tuple[str, str]]:
    """Read programs from Python files, JSON and JSON-lines files, and folders of them.

    In JSON, a program is an object with a string under "source", "code" or "text", alone, in a list, or in a list
    under "games" or "records". A Markdown fence around the program is removed. Folders are read recursively in
    the order of names; files and folders whose name starts with "." or "_" are skipped there.

    Returns:
        Pairs of a label (the path as given, with ``:number`` from 1 for entries of a list) and the source.

    Raises:
        FileNotFoundError: if a path does not exist.
        ValueError: if a file is no JSON, or has another suffix.
    """
    found: list[tuple[str, str]] = []
    for path in map(Path, paths):
        if not path.exists():
            raise FileNotFoundError(f"expected a program or a folder of programs, found nothing at {path}")
        for file in _files(path):
            found += _read(file)
    return found


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        if path.suffix not in SUFFIXES:
            raise ValueError(f"expected a file that ends in {', '.join(SUFFIXES)}; got {path}")
        yield path
        return
    for child in sorted(path.iterdir()):
        if child.name[0] not in "._" and (child.is_dir() or child.suffix in SUFFIXES):
            yield from _files(child)


def _read(file: Path) -> list[tuple[str, str]]:
    text = file.read_text(encoding="utf-8", errors="replace")
    if file.suffix == ".py":
        return [(str(file), _program(text))]
    try:
        if file.suffix == ".jsonl":
            values = [json.loads(line) for line in text.splitlines() if line.strip()]
        else:
            values = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"expected JSON in {file}; got an error at line {error.lineno}: {error.msg}") from error
    if isinstance(values, Mapping):
        entry: Mapping[str, Any] = values
        listed = next((entry[key] for key in ("games", "records") if isinstance(entry.get(key), list)), None)
        if listed is None:
            return [(str(file), source) for source in _entry(entry)]
        values = listed
    entries = [source for value in values for source in _entry(value)] if isinstance(values, list) else []
    return [(f"{file}:{number}", source) for number, source in enumerate(entries, start=1)]


def _entry(value: Any) -> list[str]:
    if not isinstance(value, Mapping):
        return []
    for name in _FIELDS:
        if isinstance(value.get(name), str):
            return [_program(value[name])]
    return []


_FENCED = re.compile(r"^[ \t]*```[\w+-]*[ \t]*\n(.*?)^[ \t]*```[ \t]*$", re.DOTALL | re.MULTILINE)


def _program(text: str) -> str:
    """The last fenced block that defines a class, else the text as it is."""
    blocks = [block for block in _FENCED.findall(text) if re.search(r"^\s*class\s", block, re.MULTILINE)]
    return blocks[-1] if blocks else text
