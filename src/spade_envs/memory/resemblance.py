"""What resembles what in a memory: the vectors, kept up to date with the database, and near-duplicates."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..record import source_id
from . import lexical, signature
from .store import Store

if TYPE_CHECKING:
    from .embed import Embedder, Vectors
    from .index import VectorIndex

MIN_OVERLAP = 0.85
"""Overlap from which a program counts as a duplicate. Renamed programs measure .96 to 1, neighbours below .5."""

_NEIGHBOURS = 16
_KEPT = 128  # similarity matrices kept; vectors and sketches, sixteen times as many
_TWINS = 256  # programs with an equal fingerprint that are compared when literals count


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The record that a program repeats."""

    id: str
    similarity: float  # cosine of the embeddings, in [-1, 1]
    overlap: float  # Jaccard index of the normalised tokens, in [0, 1]; of long programs an estimate


class Resemblance:
    """The vectors of one memory, made when first needed. Not covered: which records are live (``memory.py``)."""

    def __init__(self, store: Store, folder: Path, embedder: Embedder | None, exact_up_to: int | None) -> None:
        self._store = store
        self._folder = folder
        self._embedder = embedder
        self._exact_up_to = exact_up_to
        self._vectors: VectorIndex | None = None
        self._signed: dict[int, tuple[NDArray[np.float64], signature.Sketch]] = {}
        self._similarities: dict[tuple[int, ...], tuple[list[int], NDArray[np.float64]]] = {}
        self._seen = (-1, -1, 0)  # transaction, removals and newest record that the vectors reflect

    def embedder(self) -> Embedder:
        """Return the embedder, loading the default one."""
        from .embed import default_embedder

        if self._embedder is None:
            self._embedder = default_embedder()
        return self._embedder

    def hits(self, text: str, k: int) -> list[tuple[str, float]]:
        """Return up to ``k`` pairs (record id, cosine), archived ones too, best first."""
        with self._store.database.lock:
            return self.index().search(text, k)

    def vectors(self) -> tuple[list[str], Vectors]:
        """Return the ids of all records, archived ones too, and their vectors."""
        with self._store.database.lock:
            return self.index().vectors()

    def duplicate_of(self, source: str, *, min_overlap: float, literals: bool) -> Duplicate | None:
        """See :meth:`Memory.duplicate_of`."""
        same = source_id(source)
        if same in self._store.ids_with_prefix(same):
            return Duplicate(same, 1.0, 1.0)
        hits = dict(self.hits(lexical.words(source), _NEIGHBOURS))
        mine = signature.sign(source)
        # Any twin will do, unless literals must agree too: small program families have many twins.
        found = self._store.candidates(
            mine.fingerprint,
            mine.literal_fingerprint if literals else None,
            list(hits),
            _TWINS if literals else 1,
        )
        elements = mine.literal if literals else mine.plain
        sketch = signature.sketch(elements)
        sketches = [signature.from_bytes(data) for _, data in found]
        best: Duplicate | None = None
        estimates = signature.overlaps(sketch, sketches)
        for place in np.argsort(-estimates, kind="stable"):
            overlap, id = float(estimates[place]), found[place][0]
            if overlap < min_overlap - signature.MARGIN or (best and overlap < best.overlap - signature.MARGIN):
                break
            if abs(overlap - min_overlap) <= signature.MARGIN and not signature.is_exact(sketch, sketches[place]):
                overlap = self._settled(elements, id, overlap, literals)
            if overlap >= min_overlap and (best is None or overlap > best.overlap):
                best = Duplicate(id, hits.get(id, 0.0), overlap)
                if overlap == 1.0:
                    break
        return best

    def similarity(self, seqs: list[int]) -> tuple[list[int], NDArray[np.float64]]:
        """Return those of ``seqs`` that have a signature and their similarities, shape ``(n, n)``.

        The greater of the cosine (two stories about the same) and the overlap (the same code with other words). A
        record never changes, so what was computed is kept.
        """
        with self._store.database.lock:
            key = tuple(seqs)
            if key not in self._similarities:
                if len(self._similarities) >= _KEPT:
                    self._similarities.clear()
                self._similarities[key] = self._similarity(seqs)
            return self._similarities[key]

    def _similarity(self, seqs: list[int]) -> tuple[list[int], NDArray[np.float64]]:
        new = [seq for seq in seqs if seq not in self._signed]
        if new:
            if len(self._signed) + len(new) > 16 * _KEPT:
                self._signed.clear()
                new = seqs
            found = self._store.signatures(new)
            embedded = self.embedder().embed([words for _, words in found.values()]).astype(np.float64)
            for (seq, (data, _)), vector in zip(found.items(), embedded, strict=True):
                self._signed[seq] = vector, signature.from_bytes(data)
        kept = [seq for seq in seqs if seq in self._signed]
        if not kept:
            return [], np.zeros((0, 0))
        vectors = np.stack([self._signed[seq][0] for seq in kept])
        sketches = [self._signed[seq][1] for seq in kept]
        overlap = np.zeros((len(kept), len(kept)))
        for place, one in enumerate(sketches):
            overlap[place, : place + 1] = signature.overlaps(one, sketches[: place + 1])
        return kept, np.maximum(vectors @ vectors.T, np.maximum(overlap, overlap.T))

    def rebuild(self) -> None:
        """Make the vectors anew and save them."""
        from .index_file import IndexFile

        with self._store.database.lock:
            IndexFile(self.embedder(), self._folder).remove()
            self._vectors = None
            self.index().save(force=True)

    def close(self) -> None:
        """Save what is new and forget the vectors."""
        if self._vectors is not None and not self._store.database.read_only:
            self._vectors.save(force=True)
        self._vectors = None

    def index(self) -> VectorIndex:
        """Return the vectors, brought up to date with the database. Call it under the lock."""
        from .ann import EXACT_UP_TO
        from .index import VectorIndex

        tick, removals = self._store.state()
        if self._vectors is None:
            limit = EXACT_UP_TO if self._exact_up_to is None else self._exact_up_to
            self._vectors = VectorIndex(self.embedder(), self._folder, limit)
            self._seen = (-1, -1, 0)
        if self._seen[0] == tick:
            return self._vectors
        last = self._seen[2]
        if self._seen[1] != removals:  # first use, or records are gone: compare the sets
            known = self._store.ids_after(0)
            self._vectors.keep_only(id for _, id in known)
            missing = self._vectors.missing(id for _, id in known)
            for chunk in [missing[start : start + 256] for start in range(0, len(missing), 256)]:
                words = self._store.words_of(chunk)
                present = [id for id in chunk if id in words]
                self._add(present, [words[id] for id in present])
            last = known[-1][0] if known else last
        while batch := self._store.words(last, 256):
            missing_now = set(self._vectors.missing(id for _, id, _ in batch))
            self._add(
                [id for _, id, _ in batch if id in missing_now], [words for _, id, words in batch if id in missing_now]
            )
            last = batch[-1][0]
        if not self._store.database.read_only:
            self._vectors.save()
        self._seen = (tick, removals, last)
        return self._vectors

    def _add(self, ids: list[str], words: list[str]) -> None:
        assert self._vectors is not None
        self._vectors.add(ids, words)

    def _settled(self, mine: signature.Elements, id: str, estimate: float, literals: bool) -> float:
        """Return the exact overlap; the estimate where the other source was dropped."""
        found = self._store.by_ids([id])
        if not found:
            return estimate
        theirs = signature.elements(lexical.tokens(found[0].source, literals=literals))
        return signature.overlap(mine, theirs)
