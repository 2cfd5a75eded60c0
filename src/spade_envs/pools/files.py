"""The files of a pool: which there are, rows of tables, lists of SHA-256."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from spade_envs.pools.candidate import CODE_FIELDS, PATH_FIELDS, PoolError, first_text
from spade_envs.pools.table import rows_of

TABLES = (".parquet", ".jsonl", ".ndjson", ".csv")
PROGRAMS = (".py", ".json")
_SUMS = ("SHA256SUMS", "sha256sums.txt", "SHA256SUMS.txt", "checksums.txt")
_LARGEST_FIELD = 2**31 - 1  # characters of a CSV field; the csv module's own limit is 131,072


def walk(folder: Path, suffixes: Sequence[str]) -> Iterator[Path]:
    """Yield the files with one of ``suffixes``, also in folders below, by name; no hidden ones, links, manifest."""
    for child in sorted(folder.iterdir()):
        if child.name[0] in "._":
            continue
        if child.is_dir() and not child.is_symlink():
            yield from walk(child, suffixes)
        elif child.suffix in suffixes and child.is_file() and not child.is_symlink() and child.name != "manifest.json":
            yield child


def inside(folder: Path, relative: str) -> bool:
    """Whether ``relative`` is a file in ``folder``, links followed."""
    pure = PurePosixPath(relative)
    if pure.is_absolute() or ".." in pure.parts or "\0" in relative:
        return False
    path = folder / relative
    try:
        return path.is_file() and path.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError):  # a name that no file can have
        return False


def rows(path: Path) -> Iterator[dict[str, Any] | str]:
    """Yield the rows of a table; a text in place of a row that cannot be read says why."""
    if path.suffix == ".parquet":
        yield from rows_of(path)
        return
    with path.open(encoding="utf-8-sig", errors="replace", newline="" if path.suffix == ".csv" else None) as file:
        if path.suffix == ".csv":
            csv.field_size_limit(_LARGEST_FIELD)
            try:
                yield from ({key: value for key, value in row.items() if key} for row in csv.DictReader(file))
            except csv.Error as error:
                raise PoolError(f"{path} is not a readable CSV file: {error}") from error
            return
        for line in file:
            if line.strip():
                try:
                    row = json.loads(line)
                except (ValueError, RecursionError) as error:
                    yield f"not JSON: {error}"
                else:
                    yield row if isinstance(row, dict) else "not a JSON object"


def has_code(path: Path) -> bool:
    """Whether a table has programs in it."""
    if path.suffix == ".parquet":
        import pyarrow
        import pyarrow.parquet

        try:
            return bool(set(CODE_FIELDS) & set(pyarrow.parquet.read_schema(path).names))
        except (OSError, pyarrow.ArrowInvalid) as error:
            raise PoolError(f"{path} is not a readable Parquet file: {error}") from error
    first = next((row for row in rows(path) if isinstance(row, dict)), None)
    return first is not None and bool(set(CODE_FIELDS) & set(first))


def count_rows(paths: Sequence[Path]) -> int | None:
    """Return how many rows there are; None where only reading would tell."""
    import pyarrow.parquet

    if any(path.suffix != ".parquet" for path in paths):
        return None
    return sum(int(pyarrow.parquet.read_metadata(path).num_rows) for path in paths)


def read_list(folder: Path) -> dict[str, Mapping[str, Any]]:
    """Return what lists of the folder (``SHA256SUMS``, a table without code) say, by path and by name of file."""
    listed: dict[str, Mapping[str, Any]] = {}
    for name in _SUMS:
        if (folder / name).is_file():
            for line in (folder / name).read_text(encoding="utf-8", errors="replace").splitlines():
                digest, _, listed_path = line.partition(" ")
                listed[listed_path.strip().lstrip("*").removeprefix("./")] = {"sha256": digest}
    for path in sorted(folder.iterdir()):
        if path.suffix in TABLES and path.is_file() and not has_code(path):
            for row in rows(path):
                if isinstance(row, dict) and (name := first_text(row, PATH_FIELDS)):
                    listed[name.removeprefix("./")] = row
    return listed
