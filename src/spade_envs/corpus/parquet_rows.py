"""Parquet files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from spade_envs.corpus.cache import place_for, written
from spade_envs.corpus.document import CorpusError, Document, document_of
from spade_envs.corpus.index import Index, IndexBuilder, keep_index, load_index

_BATCH = 4096  # rows converted at once


class ParquetRows:
    """A Parquet file. A large one is converted once to Arrow's file format in the cache and mapped into memory.

    Parquet has no random access to rows: one document would cost the reading of a whole row group.
    """

    def __init__(
        self, path: Path, name: str, fields: Sequence[str], *, deduplicate: bool = True, cache: Path | None = None
    ) -> None:
        """Find the usable rows, converting the file first if it is large and was not converted before."""
        import pyarrow
        import pyarrow.parquet

        self.name, self._label = name, path.name
        try:
            with pyarrow.parquet.ParquetFile(path) as file:
                self._field = _text_column(file.schema_arrow.names, fields, name)
                place = place_for(path, "table arrow", cache)
                index_place = place_for(path, f"rows {deduplicate} {self._field} npz", cache)
                index = load_index(index_place)
                if place is None:
                    self._table: Any = file.read()
                elif not place.exists():
                    index = self._scan(_converted(file, place), deduplicate)
                    keep_index(index, index_place)
        except (pyarrow.ArrowInvalid, OSError) as error:
            raise CorpusError(f"corpus {name} is not a readable Parquet file: {error}") from error
        if place is not None:
            try:
                self._table = pyarrow.ipc.open_file(pyarrow.memory_map(str(place))).read_all()
            except (pyarrow.ArrowInvalid, OSError) as error:
                raise CorpusError(f"the copy {place} of corpus {name} is damaged: {error}; delete it") from error
        if index is None:
            index = self._scan(self._table.to_batches(max_chunksize=_BATCH), deduplicate)
            keep_index(index, index_place)
        self._rows, self.skipped, self.fingerprint = index.numbers, index.skipped, index.fingerprint

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> Document:
        number = int(self._rows[index])
        row = self._table.slice(number, 1).to_pylist()[0]
        return document_of(row, self._field, f"{self._label}:{number}")

    def _scan(self, batches: Iterable[Any], deduplicate: bool) -> Index:
        builder = IndexBuilder(self.name, "row", deduplicate=deduplicate)
        texts = (text for batch in batches for text in batch.column(self._field).to_pylist())
        for number, text in enumerate(texts):
            if isinstance(text, str) and text.strip():
                builder.read(text.encode("utf-8", "replace") + b"\0")
                builder.add(number, text)
            else:
                builder.skip(number, f"without text in {self._field}")
        return builder.build()


def _text_column(columns: Sequence[str], fields: Sequence[str], name: str) -> str:
    wanted = [field for field in fields if field in columns]
    if not wanted:
        raise CorpusError(f"corpus {name} has no column {' or '.join(fields)}; it has {', '.join(columns)}: "
                          f"name one with the field option")  # fmt: skip
    return wanted[0]


def _converted(file: Any, place: Path) -> Iterator[Any]:
    """Write the Arrow copy and yield its batches on the way."""
    import pyarrow

    with written(place) as temporary, pyarrow.ipc.new_file(str(temporary), file.schema_arrow) as writer:
        for batch in file.iter_batches(batch_size=_BATCH):
            writer.write_batch(batch)
            yield batch
