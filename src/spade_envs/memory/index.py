"""The vector index: cosine search over one vector per record, exact or approximate by size, cached in files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from . import ann
from .embed import Embedder, Vectors
from .index_file import IndexFile

_PENDING = 64  # vectors kept from the file until so many are new


class VectorIndex:
    """Record ids and their vectors, in the same order."""

    def __init__(self, embedder: Embedder, folder: Path, exact_up_to: int = ann.EXACT_UP_TO) -> None:
        self.embedder = embedder
        self.cache = IndexFile(embedder, folder)
        self._exact_up_to = exact_up_to
        self._ids: list[str] = []
        self._known: set[str] = set()
        self._index: Any = ann.empty(embedder.dimension)
        self._pending: list[tuple[list[str], Vectors]] = []  # not in the files yet
        self._tail = 0  # how many are in the tail
        self._rewrite = False  # the files say something that is not so
        self._load()

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def kind(self) -> str:
        """``flat`` or ``ivf``."""
        return "ivf" if ann.is_inverted(self._index) else "flat"

    def missing(self, ids: Iterable[str]) -> list[str]:
        """Return those of ``ids`` that have no vector here."""
        return [name for name in ids if name not in self._known]

    def add(self, ids: Sequence[str], texts: Sequence[str]) -> None:
        """Embed ``texts`` and store their vectors under ``ids`` (which must not be here yet)."""
        if not ids:
            return
        vectors = self.embedder.embed(texts)
        expected = (len(ids), self.embedder.dimension)
        if vectors.shape != expected:
            raise ValueError(
                f"the embedder {self.embedder.name!r} must return vectors of shape {expected}, got {vectors.shape}"
            )
        self._extend(ids, vectors)
        self._pending.append((list(ids), vectors))

    def keep_only(self, ids: Iterable[str]) -> None:
        """Drop vectors whose record is gone."""
        wanted = set(ids)
        if self._known <= wanted:
            return
        kept = [place for place, name in enumerate(self._ids) if name in wanted]
        vectors = ann.all_vectors(self._index)[kept]
        names = [self._ids[place] for place in kept]
        self._ids, self._known, self._pending, self._rewrite = [], set(), [], True
        self._index = ann.empty(self.embedder.dimension)
        self._extend(names, vectors)

    def search(self, text: str, k: int) -> list[tuple[str, float]]:
        """Return up to ``k`` pairs (record id, cosine), best first, ties by id."""
        k = min(k, len(self._ids))
        if k < 1:
            return []
        found = [(self._ids[place], score) for place, score in ann.nearest(self._index, self.embedder.embed([text]), k)]
        return sorted(found, key=lambda pair: (-pair[1], pair[0]))

    def vectors(self) -> tuple[list[str], Vectors]:
        """Return the ids and their vectors, shape ``(n, d)``."""
        return list(self._ids), ann.all_vectors(self._index)

    def save(self, *, force: bool = False) -> None:
        """Bring the files up to date if enough is new (64 vectors) or ``force`` is set and anything is.

        New vectors are appended to the tail; once the tail would hold an eighth of all, the whole file is written, so
        that saving costs a constant time per vector. A folder that cannot be written is no error.
        """
        new = sum(len(ids) for ids, _ in self._pending)
        if not (new or self._rewrite) or not (force or new >= _PENDING):
            return
        if self._rewrite or (self._tail + new) * 8 >= len(self._ids):
            import faiss

            saved = self.cache.replace(self._ids, faiss.serialize_index(self._index).tobytes())
            tail = 0
        else:
            saved = all(self.cache.append(ids, vectors) for ids, vectors in self._pending)
            tail = self._tail + new
        if saved:
            self._pending, self._rewrite, self._tail = [], False, tail

    def _extend(self, ids: Sequence[str], vectors: Vectors) -> None:
        self._index = ann.extended(self._index, vectors, self._exact_up_to)
        self._ids.extend(ids)
        self._known.update(ids)

    def _load(self) -> None:
        import faiss

        cached = self.cache.read()
        self._rewrite = not cached.sound
        if cached.index:
            self._index = faiss.deserialize_index(np.frombuffer(cached.index, dtype=np.uint8))
            self._ids, self._known = cached.ids, set(cached.ids)
        if cached.tail is not None:
            places = {name: place for place, name in enumerate(cached.tail_ids) if name not in self._known}
            self._extend(list(places), cached.tail[list(places.values())])
            self._tail = len(cached.tail_ids)
