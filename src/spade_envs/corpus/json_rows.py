"""JSON lines, also compressed."""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from spade_envs.corpus.cache import place_for, written
from spade_envs.corpus.document import CorpusError, Document, document_of
from spade_envs.corpus.index import Index, IndexBuilder, keep_index, load_index

JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
PACKED_SUFFIXES = (".gz", ".zst")


class JsonRows:
    """JSON lines: byte positions of the usable lines, read back with ``pread`` (safe after a fork)."""

    def __init__(
        self,
        path: Path,
        name: str,
        fields: Sequence[str],
        *,
        label: str = "",
        deduplicate: bool = True,
        cache: Path | None = None,
    ) -> None:
        """Find the usable lines, or read the index that an earlier opening left in the cache.

        A document without an ``id`` gets ``label`` (the file's name, if empty) and the number of its line.

        A compressed file is unpacked once: into the cache if it is large, else into a temporary file.
        """
        self.name, self._label, self._fields = name, label or path.name, tuple(fields)
        self._file = _unpacked(path, cache) if path.suffix in PACKED_SUFFIXES else path.open("rb")
        place = place_for(path, f"lines {deduplicate} {' '.join(self._fields)} npz", cache)
        index = load_index(place)
        if index is None:
            index = self._scan(deduplicate)
            keep_index(index, place)
        self._index = index
        self.skipped, self.fingerprint = self._index.skipped, self._index.fingerprint

    def __len__(self) -> int:
        return len(self._index.starts)

    def __getitem__(self, index: int) -> Document:
        number = int(self._index.numbers[index])
        line = os.pread(self._file.fileno(), int(self._index.lengths[index]), int(self._index.starts[index]))
        try:
            return self._parse(line, number)
        except ValueError as error:
            raise CorpusError(f"corpus {self.name} changed while it was read (line {number}): "
                              f"{error}; start again") from error  # fmt: skip

    def _scan(self, deduplicate: bool) -> Index:
        builder, position = IndexBuilder(self.name, "line", deduplicate=deduplicate), 0
        self._file.seek(0)
        for number, line in enumerate(self._file, start=1):
            if line.strip():
                builder.read(line)
                try:
                    document = self._parse(line, number)
                except (ValueError, RecursionError) as error:
                    builder.skip(number, str(error) if type(error) is CorpusError else "not JSON")
                else:
                    builder.add(number, document.text, position, len(line))
            position += len(line)
        return builder.build()

    def _parse(self, line: bytes, number: int) -> Document:
        row: Any = json.loads(line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line)
        if not isinstance(row, dict):
            raise CorpusError("not an object")
        for text_field in self._fields:
            if isinstance(text := row.get(text_field), str) and text.strip():
                return document_of(row, text_field, f"{self._label}:{number}")
        raise CorpusError(f"without text in {' or '.join(self._fields)}")


def _unpacked(path: Path, cache: Path | None) -> IO[bytes]:
    place = place_for(path, "unpacked jsonl", cache)
    if place is None:
        target = tempfile.TemporaryFile(prefix="spade-corpus-")  # noqa: SIM115  lives as long as the corpus
        _unpack(path, target)
        target.flush()
        target.seek(0)
        return target
    if not place.exists():
        with written(place) as temporary, temporary.open("wb") as file:
            _unpack(path, file)
    return place.open("rb")


def _unpack(path: Path, target: IO[bytes]) -> None:
    what = "gzip" if path.suffix == ".gz" else "zstd"
    try:
        with _packed(path) as packed:
            while block := _read(packed):
                target.write(block)
    except _Unreadable as error:
        raise CorpusError(f"corpus {path} is not a whole {what} file: {error}") from error
    except OSError as error:
        raise CorpusError(f"corpus {path} cannot be unpacked into {target.name}: {error}") from error


def _packed(path: Path) -> IO[bytes]:
    if path.suffix == ".gz":
        return gzip.open(path)  # type: ignore[return-value]
    import pyarrow

    packed: IO[bytes] = pyarrow.input_stream(str(path), compression="zstd")
    return packed


class _Unreadable(Exception):
    """The packed file is damaged; apart from an error of writing."""


def _read(packed: IO[bytes]) -> bytes:
    try:
        return packed.read(1 << 20)
    except (OSError, EOFError) as error:
        raise _Unreadable(error) from error
