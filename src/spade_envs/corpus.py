"""Grounding documents: reading a corpus and drawing from it in a seeded order without repeats.

Formats: JSON lines (``.jsonl``, ``.json``, ``.ndjson``, each also ``.gz``), Parquet, a folder of ``.txt`` and ``.md``
files, and ``builtin:nano``, the small corpus that comes with the package. Only positions are held in memory for JSON
lines; the order of drawing is computed, not stored, so it is the same after a resume whatever the size.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import logging
import os
import re
import shutil
import tempfile
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol

logger = logging.getLogger(__name__)

TEXT_FIELDS = ("text", "orig_doc")
_JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
_TEXT_SUFFIXES = (".txt", ".md")
_BUILTIN = "builtin:"
_DATA = Path(__file__).parent / "data"
_LOGGED_LINES = 5  # bad lines that are logged one by one; the rest are only counted
_ROUNDS = 8
_MASK = (1 << 64) - 1


class CorpusError(ValueError):
    """The corpus cannot be read, or holds no usable document."""


@dataclass(frozen=True, slots=True)
class Document:
    """One grounding document. ``meta`` holds the other fields of its row."""

    id: str
    text: str
    meta: Mapping[str, Any] = field(default_factory=dict)


class _Rows(Protocol):
    """Random access to the usable rows of one format."""

    name: str
    skipped: Counter[str]
    fingerprint: str

    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> Document: ...


class Corpus:
    """A read-only sequence of documents with a seeded order of drawing; open it with :meth:`open`."""

    def __init__(self, rows: _Rows) -> None:
        self._rows = rows
        self.name = rows.name
        self.fingerprint = rows.fingerprint  # changes with the content; a resumed run compares it

    @classmethod
    def open(cls, source: str | Path, *, field: str | None = None) -> Corpus:
        """Open a file, a folder of texts, or ``builtin:nano``.

        Args:
            source: where the documents are.
            field: the field or column with the text; by default the first of ``text``, ``orig_doc`` that is there.

        Raises:
            CorpusError: if ``source`` is missing, of an unknown format, or holds no usable document.
        """
        path, name = Path(source), str(source)
        if name.startswith(_BUILTIN):
            path = _DATA / f"{name.removeprefix(_BUILTIN)}_corpus.jsonl"
            if not path.is_file():
                raise CorpusError(f"no built-in corpus {name!r}; there is {', '.join(_builtins()) or 'none'}")
        if path.is_dir():
            rows: _Rows = _FolderRows(path, name)
        elif not path.exists():
            raise CorpusError(f"corpus {name} does not exist; expected a JSONL or Parquet file, a folder of texts, "
                              f"or {', '.join(_builtins())}")  # fmt: skip
        elif path.name.removesuffix(".gz").endswith(_JSON_SUFFIXES):
            rows = _JsonRows(path, name, field)
        elif path.suffix == ".parquet":
            rows = _ParquetRows(path, name, field)
        else:
            raise CorpusError(f"corpus {name}: unknown format {path.suffix!r}; expected .jsonl, .jsonl.gz, .parquet, "
                              f"or a folder of .txt and .md files")  # fmt: skip
        if rows.skipped:
            reasons = ", ".join(f"{count} {reason}" for reason, count in rows.skipped.most_common())
            logger.warning("corpus %s: skipped %d of %d rows: %s", name, rows.skipped.total(),
                           rows.skipped.total() + len(rows), reasons)  # fmt: skip
        if not len(rows):
            detail = f" ({', '.join(rows.skipped)})" if rows.skipped else ""
            wanted = ".txt or .md files" if path.is_dir() else field or " or ".join(TEXT_FIELDS)
            raise CorpusError(f"corpus {name} holds no usable document{detail}; expected {wanted} with text in it")
        return cls(rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> Document:
        """The document at ``index`` in the order of the source."""
        if not 0 <= index < len(self):
            raise IndexError(f"document {index} of {len(self)}")
        return self._rows[index]

    def __iter__(self) -> Iterator[Document]:
        return (self._rows[index] for index in range(len(self)))

    @property
    def skipped(self) -> Mapping[str, int]:
        """How many rows were unusable, by reason."""
        return self._rows.skipped

    def sample(self, seed: int, index: int) -> Document:
        """Return the ``index``-th document of the order that ``seed`` fixes.

        No document comes twice before all have come once; then another order begins.
        """
        if index < 0:
            raise IndexError(f"expected an index of 0 or more, got {index}")
        turn, position = divmod(index, len(self))
        return self._rows[permuted(position, len(self), (seed, turn))]


def permuted(index: int, size: int, key: tuple[int, ...]) -> int:
    """Return where a pseudo-random permutation of ``range(size)``, chosen by ``key``, sends ``index``.

    A balanced Feistel network over the next power of four, walked until it falls into the range
    (Black and Rogaway 2002, "Ciphers with arbitrary finite domains"). No list is made.
    """
    half = max(1, ((size - 1).bit_length() + 1) // 2)
    mask = (1 << half) - 1
    digest = hashlib.blake2b(repr(key).encode(), digest_size=8 * _ROUNDS).digest()
    keys = [int.from_bytes(digest[8 * i : 8 * i + 8], "little") for i in range(_ROUNDS)]
    while True:
        left, right = index >> half, index & mask
        for round_key in keys:
            left, right = right, left ^ (_mix(right ^ round_key) & mask)
        index = left << half | right
        if index < size:
            return index


def _mix(value: int) -> int:
    """Finaliser of SplitMix64 (Steele, Lea and Flood 2014)."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & _MASK
    return value ^ value >> 31


def cut_words(text: str, limit: int) -> str:
    """Return the first ``limit`` words of ``text`` with the white space between them as it is."""
    end = 0
    for count, word in enumerate(re.finditer(r"\S+", text), start=1):
        if count > limit:
            return text[:end]
        end = word.end()
    return text


def _builtins() -> list[str]:
    return [_BUILTIN + path.name.removesuffix("_corpus.jsonl") for path in sorted(_DATA.glob("*_corpus.jsonl"))]


def _clean(text: str) -> str:
    """Replace lone surrogates, which no file or database can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _document(row: Mapping[str, Any], text_field: str, fallback_id: str) -> Document:
    meta = {key: value for key, value in row.items() if key not in (text_field, "id")}
    identity = row.get("id")
    return Document(str(identity) if isinstance(identity, str | int) else fallback_id, _clean(row[text_field]), meta)


class _JsonRows:
    """JSON lines: byte positions of the usable lines, read back with ``pread`` (safe after a fork)."""

    def __init__(self, path: Path, name: str, text_field: str | None) -> None:
        self.name, self.skipped = name, Counter[str]()
        self._path, self._fields = path, (text_field,) if text_field else TEXT_FIELDS
        self._file = self._open(path)
        self._starts, self._lengths, self._lines = array("Q"), array("Q"), array("Q")
        digest, position = hashlib.blake2b(digest_size=16), 0
        for number, line in enumerate(self._file, start=1):
            if line.strip():
                digest.update(line)
                try:
                    self._parse(line, number)
                except (ValueError, RecursionError) as error:
                    self._skip(number, str(error) if type(error) is CorpusError else "not JSON")
                else:
                    self._starts.append(position)
                    self._lengths.append(len(line))
                    self._lines.append(number)
            position += len(line)
        self.fingerprint = digest.hexdigest()

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, index: int) -> Document:
        line = os.pread(self._file.fileno(), self._lengths[index], self._starts[index])
        try:
            return self._parse(line, self._lines[index])
        except ValueError as error:
            raise CorpusError(f"corpus {self.name} changed while it was read (line {self._lines[index]}): "
                              f"{error}; start again") from error  # fmt: skip

    @staticmethod
    def _open(path: Path) -> IO[bytes]:
        if path.suffix != ".gz":
            return path.open("rb")
        unpacked = tempfile.TemporaryFile(prefix="spade-corpus-")  # noqa: SIM115  lives as long as the corpus
        try:
            with gzip.open(path) as packed:
                shutil.copyfileobj(packed, unpacked, 1 << 20)
        except (OSError, EOFError) as error:
            raise CorpusError(f"corpus {path} is not a whole gzip file: {error}") from error
        unpacked.flush()
        unpacked.seek(0)
        return unpacked

    def _parse(self, line: bytes, number: int) -> Document:
        row = json.loads(line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line)
        if not isinstance(row, dict):
            raise CorpusError("not an object")
        for text_field in self._fields:
            if isinstance(text := row.get(text_field), str) and text.strip():
                return _document(row, text_field, f"{self._path.name}:{number}")
        raise CorpusError(f"without text in {' or '.join(self._fields)}")

    def _skip(self, number: int, reason: str) -> None:
        self.skipped[reason] += 1
        if self.skipped.total() <= _LOGGED_LINES:
            logger.warning("%s, line %d skipped: %s", self.name, number, reason)


class _ParquetRows:
    """A Parquet file; its columns are held as Arrow buffers."""

    def __init__(self, path: Path, name: str, text_field: str | None) -> None:
        import pyarrow
        import pyarrow.parquet

        self.name, self.skipped, self._path = name, Counter[str](), path
        try:
            self._table = pyarrow.parquet.read_table(path)
        except (pyarrow.ArrowInvalid, OSError) as error:
            raise CorpusError(f"corpus {name} is not a readable Parquet file: {error}") from error
        columns = self._table.column_names
        wanted = [column for column in ((text_field,) if text_field else TEXT_FIELDS) if column in columns]
        if not wanted:
            raise CorpusError(f"corpus {name} has no column {text_field or ' or '.join(TEXT_FIELDS)}; "
                              f"it has {', '.join(columns)}: name one with the field option")  # fmt: skip
        self._field, self._rows, digest = wanted[0], array("Q"), hashlib.blake2b(digest_size=16)
        for number, value in enumerate(self._table.column(self._field)):
            text = value.as_py()
            if isinstance(text, str) and text.strip():
                self._rows.append(number)
                digest.update(text.encode("utf-8", "replace") + b"\0")
            else:
                self.skipped[f"without text in {self._field}"] += 1
        self.fingerprint = digest.hexdigest()

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> Document:
        number = self._rows[index]
        row = self._table.slice(number, 1).to_pylist()[0]
        return _document(row, self._field, f"{self._path.name}:{number}")


class _FolderRows:
    """A folder of text files, read when they are drawn; ids are paths below the folder."""

    def __init__(self, path: Path, name: str) -> None:
        self.name, self.skipped, self._folder = name, Counter[str](), path
        digest, self._names = hashlib.blake2b(digest_size=16), list[str]()
        for file in sorted(path.rglob("*")):
            if file.suffix.lower() not in _TEXT_SUFFIXES or not file.is_file():
                continue
            if not file.read_bytes().strip():
                self.skipped["empty file"] += 1
                continue
            self._names.append(file.relative_to(path).as_posix())
            digest.update(f"{self._names[-1]}\0{file.stat().st_size}\0".encode("utf-8", "replace"))
        self.fingerprint = digest.hexdigest()

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, index: int) -> Document:
        file = self._folder / self._names[index]
        try:
            return Document(self._names[index], file.read_text(encoding="utf-8", errors="replace"))
        except OSError as error:
            raise CorpusError(f"corpus {self.name} changed while it was read: {error}; start again") from error
