"""Finding programs in files and folders, one at a time."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

SUFFIXES = (".py", ".json", ".jsonl")
_FIELDS = ("source", "code", "text")


def collect_sources(paths: Iterable[str | Path]) -> list[tuple[str, str]]:
    """Return what :func:`iter_sources` yields, as a list.

    Raises:
        FileNotFoundError: if a path does not exist.
        ValueError: if a file is no JSON, or has another suffix.
    """
    return list(iter_sources(paths))


def iter_sources(paths: Iterable[str | Path], *, whole: bool = False) -> Iterator[tuple[str, str]]:
    """Read programs from Python files, JSON and JSON-lines files, and folders of them, holding one file at a time.

    In JSON, a program is an object with a string under "source", "code" or "text", alone, in a list, or in a list
    under "games" or "records". A Markdown fence around the program becomes blank lines unless ``whole``, so that
    line numbers are those of the file. Folders are read recursively in the order of names; files and folders whose
    name starts with "." or "_" are skipped there. JSON-lines files are read line by line; a line that is no object
    with a program is taken for the program itself, so that it is refused and counted.

    Yields:
        Pairs of a label (the path as given, with ``:number`` from 1 for lines or entries of a list) and the source.

    Raises:
        FileNotFoundError: if a path does not exist.
        ValueError: if a file is no JSON, or has another suffix.
    """
    for path in map(Path, paths):
        for file in _files(path):
            for label, text in _read(file):
                yield label, text if whole else _program(text)


def count_sources(paths: Sequence[str | Path]) -> int | None:
    """Return how many programs there are, None where only reading JSON would tell. Reads names alone.

    Raises:
        FileNotFoundError: if a path does not exist.
        ValueError: if a file has another suffix.
    """
    total, known = 0, True
    for path in map(Path, paths):
        for file in _files(path):
            total += 1
            known = known and file.suffix == ".py"
    return total if known or not total else None


def find_source(label: str, *, whole: bool = False) -> str:
    """Return the source under a label of :func:`iter_sources`.

    Raises:
        KeyError: if the file has no such entry any more. FileNotFoundError, ValueError: as there.
    """
    file = Path(label)
    if not file.exists():
        file = Path(label.rpartition(":")[0])
    for found, source in iter_sources([file], whole=whole):
        if found == label:
            return source
    raise KeyError(f"no program {label} any more")


def _files(path: Path) -> Iterator[Path]:
    if not path.exists():
        raise FileNotFoundError(f"expected a program or a folder of programs, found nothing at {path}")
    if path.is_file():
        if path.suffix not in SUFFIXES:
            raise ValueError(f"expected a file that ends in {', '.join(SUFFIXES)}; got {path}")
        yield path
        return
    for name in sorted(os.listdir(path)):  # names alone: a folder may hold very many
        if name[0] in "._":
            continue
        child = path / name
        if child.is_dir() or (child.suffix in SUFFIXES and child.is_file()):
            yield from _files(child)


def _read(file: Path) -> Iterator[tuple[str, str]]:
    if file.suffix == ".jsonl":
        yield from _lines(file)
        return
    text = file.read_text(encoding="utf-8", errors="replace")
    if file.suffix == ".py":
        yield str(file), text
        return
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"expected JSON in {file}; got an error at line {error.lineno}: {error.msg}") from error
    if isinstance(values, Mapping):
        entry: Mapping[str, Any] = values
        listed = next((entry[key] for key in ("games", "records") if isinstance(entry.get(key), list)), None)
        if listed is None:
            yield from ((str(file), source) for source in _entry(entry))
            return
        values = listed
    yield from _number(file, values if isinstance(values, list) else [])


def _lines(file: Path) -> Iterator[tuple[str, str]]:
    with file.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                found = _entry(json.loads(line))
            except (ValueError, RecursionError):
                found = []
            yield f"{file}:{number}", found[0] if found else line


def _number(file: Path, values: Iterable[Any]) -> Iterator[tuple[str, str]]:
    sources = (source for value in values for source in _entry(value))
    return ((f"{file}:{number}", source) for number, source in enumerate(sources, start=1))


def _entry(value: Any) -> list[str]:
    if not isinstance(value, Mapping):
        return []
    for name in _FIELDS:
        if isinstance(value.get(name), str):
            return [value[name]]
    return []


_FENCED = re.compile(r"^[ \t]*```[\w+-]*[ \t]*\n(.*?)^[ \t]*```[ \t]*$", re.DOTALL | re.MULTILINE)


def _program(text: str) -> str:
    """The last fenced block that defines a class, on its lines, else the text as it is."""
    blocks = [block for block in _FENCED.finditer(text) if re.search(r"^\s*class\s", block[1], re.MULTILINE)]
    return "\n" * text.count("\n", 0, blocks[-1].start(1)) + blocks[-1][1] if blocks else text
