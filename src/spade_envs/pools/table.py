"""Our own table of environments: one typed row for each record, and one for each play."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spade_envs.memory.transfer import Play, Stored
from spade_envs.pools.candidate import Candidate, PoolError, sha256, statistics_of
from spade_envs.record import EnvironmentRecord, source_id

if TYPE_CHECKING:
    import pyarrow

ENVIRONMENTS, PLAYS = "environments.parquet", "plays.parquet"
FORMAT = "spade-envs 1"
_GROUP = 1000  # rows of a row group
_MARK = b"spade_envs"  # key of the schema's metadata


def environments_schema() -> pyarrow.Schema:
    """Columns of ``environments.parquet``. The first eight are those of the published tables."""
    import pyarrow as pa

    text, number, real = pa.string(), pa.int64(), pa.float64()
    columns = {
        "game_id": text, "file_name": text, "skill": text, "sha256": text, "line_count": number, "byte_count": number,
        "code": text, "path": text,
        "id": text, "env_id": text, "name": text, "kind": text, "hint": text, "generator": text, "licence": text,
        "proven": pa.bool_(), "max_turns": number, "allow": pa.list_(text), "parents": pa.list_(text),
        "document_id": text, "document": text, "created_at": real, "run": text, "archived": pa.bool_(),
        "plain_plays": number, "plain_return": real, "plain_wins": number,
        "hinted_plays": number, "hinted_return": real, "hinted_wins": number,
        "win_rate": real, "mean_return": real, "mean_hinted_return": real, "regret": real,
        "report": text, "meta": text,
    }  # fmt: skip
    return pa.schema([pa.field(name, kind) for name, kind in columns.items()], metadata={_MARK: FORMAT.encode()})


def plays_schema() -> pyarrow.Schema:
    """Columns of ``plays.parquet``: one row for each episode, in the order of the environments."""
    import pyarrow as pa

    return pa.schema(
        [("id", pa.string()), ("hinted", pa.bool_()), ("return", pa.float64()), ("run", pa.string()),
         ("step", pa.int64())],
        metadata={_MARK: FORMAT.encode()},
    )  # fmt: skip


class TableWriter:
    """Writes rows of one schema, a thousand at a time; equal rows make equal bytes."""

    def __init__(self, path: Path, schema: pyarrow.Schema) -> None:
        import pyarrow.parquet

        self._schema, self._rows = schema, list[Mapping[str, Any]]()
        self._writer = pyarrow.parquet.ParquetWriter(path, schema, compression="zstd")

    def add(self, row: Mapping[str, Any]) -> None:
        """Write one row."""
        self._rows.append(row)
        if len(self._rows) == _GROUP:
            self._flush()

    def close(self) -> None:
        """Finish the file."""
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        import pyarrow

        if self._rows:
            self._writer.write_table(pyarrow.Table.from_pylist(self._rows, self._schema))
            self._rows = []


def environment_row(stored: Stored, path: str) -> dict[str, Any]:
    """Return the row of a record whose source is at ``path`` in the export."""
    record, played = stored.record, stored.record.statistics
    source = record.source.encode("utf-8", "replace")
    return {
        "game_id": record.id[:16],
        "file_name": path.rpartition("/")[2],
        "path": path,
        "sha256": sha256(source),
        "line_count": record.source.count("\n"),
        "byte_count": len(source),
        "code": source.decode(),
        "env_id": record.env_id,
        **{name: getattr(record, name) for name in ("id", "proven", "max_turns", "created_at")},
        **{name: _storable(getattr(record, name)) for name in _TEXTS},
        "allow": list(record.allow),
        "parents": list(record.parents),
        "run": _storable(stored.run),
        "archived": stored.archived,
        **{name: getattr(played, name) for name in played.__slots__},
        "win_rate": played.win_rate,
        "mean_return": played.mean_plain,
        "mean_hinted_return": played.mean_hinted,
        "regret": played.regret,
        "report": json.dumps(dict(record.report)),  # ASCII: lone surrogates in a report survive
        "meta": json.dumps(dict(record.meta)),
    }


def play_rows(stored: Stored) -> Iterator[dict[str, Any]]:
    """Return the rows of a record's episodes."""
    for play in stored.plays:
        yield {
            "id": stored.record.id,
            "hinted": play.hinted,
            "return": play.value,
            "run": _storable(play.run),
            "step": play.step,
        }


def is_ours(path: Path) -> bool:
    """Whether a Parquet file is a table of environments that we wrote."""
    import pyarrow.parquet

    try:
        metadata = pyarrow.parquet.read_schema(path).metadata or {}
    except (OSError, pyarrow.ArrowInvalid) as error:
        raise PoolError(f"{path} is not a readable Parquet file: {error}") from error
    if (found := metadata.get(_MARK, b"").decode("utf-8", "replace")) and found != FORMAT:
        raise PoolError(f"expected a table of {FORMAT!r} in {path}, got {found!r}; upgrade spade-envs")
    return bool(found)


def read_environments(path: Path, plays: Path | None = None) -> Iterator[Candidate]:
    """Yield the programs of a table that we wrote, with all that it says of them."""
    episodes = _grouped_plays(plays) if plays is not None and plays.is_file() else iter(())
    identity, group = next(episodes, ("", ()))
    for number, row in enumerate(rows_of(path)):
        while identity and identity < str(row.get("id")):  # both are sorted by id
            identity, group = next(episodes, ("", ()))
        mine = group if identity == row.get("id") else ()
        yield _candidate(row, tuple(mine), f"{path.name}:{number}")


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of any Parquet file, a few hundred in memory at a time."""
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=256):
                yield from batch.to_pylist()
    except (OSError, pyarrow.ArrowInvalid) as error:
        raise PoolError(f"{path} is not a readable Parquet file: {error}") from error


_TEXTS = ("skill", "name", "kind", "hint", "generator", "licence", "document_id", "document")


_KINDS = (("code", str), ("file_name", str), ("sha256", str), ("run", str), ("archived", bool), ("proven", bool))


def _candidate(row: Mapping[str, Any], plays: tuple[Play, ...], label: str) -> Candidate:
    try:
        code = row["code"]
        for name, kind in (*_KINDS, *((text, str) for text in _TEXTS)):
            if type(row[name]) is not kind:
                raise TypeError(f"{name} is {type(row[name]).__name__}, expected {kind.__name__}")
        if row["id"] != source_id(code):
            raise ValueError(f"its id {str(row['id'])[:16]} is not that of its code, {source_id(code)[:16]}")
        record = EnvironmentRecord.create(
            code,
            **{name: row[name] for name in (*_TEXTS, "max_turns", "proven", "created_at")},
            allow=tuple(row["allow"]),
            parents=tuple(row["parents"]),
            report=_object(row["report"]),
            meta=_object(row["meta"]),
            statistics=statistics_of(row),
        )
    except KeyError as error:
        return Candidate(label, problem=f"the row has no column {error}")
    except (ValueError, TypeError, RecursionError) as error:
        return Candidate(label, problem=f"the row cannot be read: {error}")
    return Candidate(
        label=f"{label} {row['file_name']}",
        code=code,
        expected_sha256=row["sha256"],
        actual_sha256=sha256(code.encode()),
        stored=Stored(record, row["run"], row["archived"], plays),
    )


def _grouped_plays(path: Path) -> Iterator[tuple[str, Sequence[Play]]]:
    for identity, rows in groupby(map(_play, rows_of(path)), key=lambda pair: pair[0]):
        yield identity, [play for _, play in rows]


def _play(row: Mapping[str, Any]) -> tuple[str, Play]:
    kinds = (("id", str), ("hinted", bool), ("return", float), ("run", str), ("step", int))
    if any(type(row.get(name)) is not kind for name, kind in kinds) or not math.isfinite(row["return"]):
        raise PoolError(f"a row of {PLAYS} is not what `spade export` writes: {str(dict(row))[:120]}")
    return row["id"], Play(row["hinted"], row["return"], row["run"], row["step"])


def _object(text: str) -> dict[str, Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError(f"expected a JSON object, got {text[:60]!r}")
    return value


def _storable(text: str) -> str:
    """Replace lone surrogates, which Parquet cannot hold."""
    return text.encode("utf-8", "replace").decode()
