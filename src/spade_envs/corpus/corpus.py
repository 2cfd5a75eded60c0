"""The corpus: a sequence of documents with a seeded order of drawing.

Formats: JSON lines (``.jsonl``, ``.json``, ``.ndjson``, each also ``.gz`` and ``.zst``), Parquet, a folder of ``.txt``
and ``.md`` files, Hugging Face datasets, and ``builtin:nano``, the small corpus that comes with the package. Only
positions are held in memory; the order of drawing is computed, not stored, so it is the same after a resume
whatever the size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from spade_envs.corpus.document import TEXT_FIELDS, CorpusError, Document, Rows, logger
from spade_envs.corpus.folder_rows import FolderRows
from spade_envs.corpus.hub_rows import HUB, open_hub
from spade_envs.corpus.json_rows import JSON_SUFFIXES, JsonRows
from spade_envs.corpus.order import permuted
from spade_envs.corpus.parquet_rows import ParquetRows

_BUILTIN = "builtin:"
_DATA = Path(__file__).parents[1] / "data"


class Corpus:
    """A read-only sequence of documents with a seeded order of drawing; open it with :meth:`open`."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self.name = rows.name
        self.fingerprint = rows.fingerprint  # changes with the content; a resumed run compares it

    @classmethod
    def open(
        cls,
        source: str | Path,
        *,
        field: str | None = None,
        deduplicate: bool = True,
        cache: Path | None = None,
    ) -> Corpus:
        """Open a file, a folder of texts, ``hf:owner/name[:config][:split][[:rows]]``, or ``builtin:nano``.

        Args:
            source: where the documents are.
            field: the field or column with the text; by default the first of ``text``, ``orig_doc`` that is there.
            deduplicate: leave out documents whose words are those of an earlier one.
            cache: folder for the index and for unpacked copies; by default the user's cache folder, for files of
                8 MB and more.

        Raises:
            CorpusError: if ``source`` is missing, of an unknown format, or holds no usable document.
        """
        path, name = Path(source), str(source)
        fields = (field,) if field else TEXT_FIELDS
        if name.startswith(_BUILTIN):
            path = _DATA / f"{name.removeprefix(_BUILTIN)}_corpus.jsonl"
            if not path.is_file():
                raise CorpusError(f"no built-in corpus {name!r}; there is {', '.join(_builtins()) or 'none'}")
        if name.startswith(HUB):
            rows: Rows = open_hub(name, fields, deduplicate=deduplicate, cache=cache)
        elif path.is_dir():
            rows = FolderRows(path, name, deduplicate=deduplicate)
        elif not path.exists():
            raise CorpusError(f"corpus {name} does not exist; expected a JSONL or Parquet file, a folder of texts, "
                              f"hf:OWNER/NAME, or {', '.join(_builtins())}")  # fmt: skip
        elif path.name.removesuffix(".gz").removesuffix(".zst").endswith(JSON_SUFFIXES):
            rows = JsonRows(path, name, fields, deduplicate=deduplicate, cache=cache)
        elif path.suffix == ".parquet":
            rows = ParquetRows(path, name, fields, deduplicate=deduplicate, cache=cache)
        else:
            raise CorpusError(f"corpus {name}: unknown format {path.suffix!r}; expected .jsonl, .jsonl.gz, .jsonl.zst, "
                              f".parquet, or a folder of .txt and .md files")  # fmt: skip
        if rows.skipped:
            reasons = ", ".join(f"{count} {reason}" for reason, count in rows.skipped.most_common())
            logger.warning("corpus %s: skipped %d of %d rows: %s", name, rows.skipped.total(),
                           rows.skipped.total() + len(rows), reasons)  # fmt: skip
        if not len(rows):
            detail = f" ({', '.join(rows.skipped)})" if rows.skipped else ""
            wanted = ".txt or .md files" if path.is_dir() else " or ".join(fields)
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
        """How many rows were not taken, by reason."""
        return self._rows.skipped

    def sample(self, seed: int, index: int) -> Document:
        """Return the ``index``-th document of the order that ``seed`` fixes.

        No document comes twice before all have come once; then another order begins.
        """
        if index < 0:
            raise IndexError(f"expected an index of 0 or more, got {index}")
        turn, position = divmod(index, len(self))
        return self._rows[permuted(position, len(self), (seed, turn))]


def _builtins() -> list[str]:
    return [_BUILTIN + path.name.removesuffix("_corpus.jsonl") for path in sorted(_DATA.glob("*_corpus.jsonl"))]
