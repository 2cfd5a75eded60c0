"""Reading pools: the published layouts, our own exports, and plain programs.

Published: (a) ``manifest.json`` with ``summary`` and ``games`` beside ``games/gen_NNNN/*.py``; (b) ``manifest.json``
beside ``environments/<run>/*.py``; (c) a table with ``code``, ``sha256``, ``skill``, ...; (d) ``.py`` files with a list
of their SHA-256. Nothing is executed here, and no file outside of the pool's folder is read.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from spade_envs.pools import files, table
from spade_envs.pools.candidate import (
    CODE_FIELDS,
    MAX_BYTES,
    PATH_FIELDS,
    Candidate,
    PoolError,
    decode,
    first_text,
    record_fields,
    sha256,
)
from spade_envs.pools.card import read_card

_LISTS = ("games", "environments", "records", "entries", "programs")
_SMALL, _RATIO = 64 << 20, 20  # bytes; what Parquet holds is compressed already, so an archive barely shrinks it
_ARCHIVES = (".spade", ".zip")


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool that was found; iterating it reads one program at a time."""

    path: Path
    name: str
    layout: str  # "manifest", "table", "files" or "export"
    licence: str = ""  # of the whole pool, as its card or manifest says
    generator: str = ""
    size: int | None = None  # programs, where that is known beforehand
    origin: str = ""  # where it was fetched from, such as hf:owner/name

    def __iter__(self) -> Iterator[Candidate]:
        """Yield every program in a fixed order.

        Raises:
            PoolError: if a file of the pool cannot be read at all.
        """
        return {"export": _export, "manifest": _manifest, "table": _tables, "files": _files}[self.layout](self)


def open_pool(source: str | Path) -> Pool:
    """Find out what ``source`` is: a folder, a file (``.py .json .jsonl .csv .parquet .spade``).

    Raises:
        PoolError: if there is nothing that could be a pool.
    """
    path = Path(source).expanduser()
    if not path.exists():
        raise PoolError(f"expected a pool (a folder, .py, .json, .jsonl, .csv, .parquet or .spade file); found nothing "
                        f"at {path}")  # fmt: skip
    if path.name == "manifest.json":
        path = path.parent
    name = path.resolve().stem if path.is_file() else path.resolve().name
    if path.suffix in _ARCHIVES and path.is_file():
        return Pool(path, name, "export")
    if path.suffix == ".parquet" and table.is_ours(path):
        return Pool(path, name, "export", size=files.count_rows([path]))
    if path.is_file():
        if path.suffix not in (*files.TABLES, *files.PROGRAMS):
            raise PoolError(f"expected a .py, .json, .jsonl, .csv, .parquet or .spade file; got {path}")
        one = "table" if path.suffix in files.TABLES else "files"
        return Pool(path, name, one, size=files.count_rows([path]) if one == "table" else None)
    card = read_card(path / "README.md")
    ours = path / table.ENVIRONMENTS
    if ours.is_file() and table.is_ours(ours):
        return Pool(path, name, "export", card.licence, size=files.count_rows([ours]))
    if (path / "manifest.json").is_file():
        values = _read_manifest(path / "manifest.json")
        entries = _entries(values)
        if any(first_text(entry, (*PATH_FIELDS, *CODE_FIELDS)) for entry in entries):
            summary = values.get("summary") if isinstance(values, Mapping) else None
            about: dict[str, Any] = {**(summary if isinstance(summary, Mapping) else {})}
            licence = first_text(about, ("licence", "license")) or card.licence
            generator = first_text(about, ("generator", "model"))
            return Pool(path, name, "manifest", licence, generator, size=len(entries))
    found = [file for file in files.walk(path, files.TABLES) if files.has_code(file)]
    if found:
        return Pool(path, name, "table", card.licence, size=files.count_rows(found))
    programs = sum(1 for _ in files.walk(path, files.PROGRAMS))
    if not programs:
        raise PoolError(f"no programs in {path}: expected manifest.json, a table with a column 'code', or .py files")
    return Pool(path, name, "files", card.licence, size=programs)


def _export(pool: Pool) -> Iterator[Candidate]:
    if pool.path.suffix == ".parquet":
        yield from table.read_environments(pool.path)
        return
    if pool.path.is_dir():
        yield from table.read_environments(pool.path / table.ENVIRONMENTS, pool.path / table.PLAYS)
        return
    with TemporaryDirectory(prefix="spade-pool-") as folder:
        try:
            with zipfile.ZipFile(pool.path) as packed:
                for name in {table.ENVIRONMENTS, table.PLAYS} & set(packed.namelist()):
                    size, stored = packed.getinfo(name).file_size, packed.getinfo(name).compress_size
                    if size > max(_SMALL, _RATIO * stored):
                        raise PoolError(f"{pool.path} is no export: {name} would grow from {stored} bytes to {size}")
                    packed.extract(name, folder)
        except (zipfile.BadZipFile, OSError, NotImplementedError, RuntimeError) as error:
            raise PoolError(f"{pool.path} is not a whole archive: {error}") from error
        environments = Path(folder) / table.ENVIRONMENTS
        if not environments.is_file() or not table.is_ours(environments):
            raise PoolError(f"{pool.path} holds no {table.ENVIRONMENTS}; expected what `spade export` wrote")
        yield from table.read_environments(environments, Path(folder) / table.PLAYS)


def _manifest(pool: Pool) -> Iterator[Candidate]:
    entries = _entries(_read_manifest(pool.path / "manifest.json"))
    seen: set[str] = set()
    for number, entry in enumerate(entries):
        if first_text(entry, CODE_FIELDS):
            yield _entry_candidate(pool, entry, f"manifest.json:{number}")
            continue
        place = _place(pool.path, entry)
        label = place or f"manifest.json:{number} {first_text(entry, PATH_FIELDS)}"
        if label in seen:
            label = f"manifest.json:{number} {label}"
        seen.add(label)
        if not place:
            yield Candidate(label, problem="the manifest names a file that is not there, or not in the pool's folder")
            continue
        yield _file_candidate(pool, place, entry, label)


def _place(folder: Path, entry: Mapping[str, Any]) -> str:
    """The file of an entry, relative to the pool's folder; "" if there is none inside of it."""
    for field in PATH_FIELDS:
        if not (name := first_text(entry, (field,))):
            continue
        tried = [name]
        for prefix in ("generation", "source_run", "run"):
            if part := first_text(entry, (prefix,)):
                tried += [f"games/{part}/{name}", f"environments/{part}/{name}"]
        for relative in (*tried, f"games/{name}", f"environments/{name}"):
            if files.inside(folder, relative):
                return relative
    return ""


def _tables(pool: Pool) -> Iterator[Candidate]:
    found = [pool.path] if pool.path.is_file() else files.walk(pool.path, files.TABLES)
    for path in found:
        if not files.has_code(path):
            continue
        shown = path.name if pool.path.is_file() else path.relative_to(pool.path).as_posix()
        for number, row in enumerate(files.rows(path), start=1):
            label = f"{shown}:{number}"
            if isinstance(row, str):
                yield Candidate(label, problem=row)
            else:
                yield _entry_candidate(pool, row, label)


def _files(pool: Pool) -> Iterator[Candidate]:
    if pool.path.is_file():
        yield from _program_file(pool, pool.path, pool.path.name, {})
        return
    listed = files.read_list(pool.path)
    for path in files.walk(pool.path, files.PROGRAMS):
        relative = path.relative_to(pool.path).as_posix()
        yield from _program_file(pool, path, relative, listed.get(relative) or listed.get(path.name) or {})


def _program_file(pool: Pool, path: Path, label: str, entry: Mapping[str, Any]) -> Iterator[Candidate]:
    if path.suffix == ".py":
        yield _file_candidate(pool, label if pool.path.is_dir() else "", entry, label)
        return
    try:
        values = json.loads(path.read_text(encoding="utf-8", errors="replace"))
    except (ValueError, RecursionError) as error:
        yield Candidate(label, problem=f"not JSON: {error}")
        return
    entries = _entries(values) or ([values] if isinstance(values, dict) else [])
    for number, one in enumerate(entries, start=1):
        yield _entry_candidate(pool, one, label if len(entries) == 1 else f"{label}:{number}")


def _file_candidate(pool: Pool, relative: str, entry: Mapping[str, Any], label: str) -> Candidate:
    path = pool.path / relative if relative else pool.path
    if path.stat().st_size > MAX_BYTES:
        return Candidate(label, problem=f"the file has {path.stat().st_size} bytes; up to {MAX_BYTES} are read")
    content = path.read_bytes()
    return _candidate(pool, decode(content), content, entry, label)


def _entry_candidate(pool: Pool, entry: Mapping[str, Any], label: str) -> Candidate:
    code = first_text(entry, CODE_FIELDS)
    if not code:
        return Candidate(label, problem=f"no text under {' or '.join(CODE_FIELDS)}")
    content = code.encode("utf-8", "surrogatepass")
    if len(content) > MAX_BYTES:
        return Candidate(label, problem=f"the program has {len(content)} bytes; up to {MAX_BYTES} are read")
    return _candidate(pool, code, content, entry, label)


def _candidate(pool: Pool, code: str, content: bytes, entry: Mapping[str, Any], label: str) -> Candidate:
    fields = record_fields(entry, code, pool=pool.name, label=label)
    if pool.origin:
        fields["meta"]["pool"]["origin"] = pool.origin
    fields["licence"] = fields["licence"] or pool.licence
    fields["generator"] = fields["generator"] or pool.generator
    return Candidate(label, code, "", first_text(entry, ("sha256",)), sha256(content), fields)


def _read_manifest(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise PoolError(f"expected JSON in {path}; got: {error}") from error


def _entries(values: Any) -> list[Mapping[str, Any]]:
    """The entries of a manifest: a list, a list under a usual name, or an object of path → SHA-256 or entry."""
    if isinstance(values, Mapping):
        for name in _LISTS:
            if isinstance(values.get(name), list):
                values = values[name]
                break
        else:
            listed = values.get("files", values)
            if not isinstance(listed, Mapping):
                values = listed if isinstance(listed, list) else []
            else:
                values = [
                    {"path": path, **(about if isinstance(about, Mapping) else {"sha256": about})}
                    for path, about in listed.items()
                    if path.endswith(".py")
                ]
    return [entry for entry in values if isinstance(entry, Mapping)] if isinstance(values, list) else []
