"""The vector index: exact cosine search over one vector per record, kept by FAISS, cached in a file.

The file is a cache. It is named after the embedder, checked by a checksum before FAISS reads a byte of it, and
replaced atomically; whoever finds it missing, damaged or stale makes it anew from the database.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import re
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .embed import Embedder, Vectors

_LOG = logging.getLogger(__name__)
_FORMAT = 1
_ID_BYTES = 32
RECIPE = 1
"""Version of the text that is embedded (``lexical.words``); another one makes older files useless."""


class VectorIndex:
    """Record ids and their vectors, in the same order."""

    def __init__(self, embedder: Embedder, folder: Path) -> None:
        self._embedder = embedder
        self.file = index_file(embedder, folder)
        self._header = {
            "format": _FORMAT,
            "recipe": RECIPE,
            "embedder": embedder.name,
            "dimension": embedder.dimension,
        }
        self._ids: list[str] = []
        self._known: set[str] = set()
        self._unsaved = 0
        # A plain flat index: FAISS's own id map wakes all threads for each query, which costs milliseconds.
        self._flat: Any = None
        self._load()

    def __len__(self) -> int:
        return len(self._ids)

    def missing(self, ids: Iterable[str]) -> list[str]:
        """Return those of ``ids`` that have no vector here."""
        return [name for name in ids if name not in self._known]

    def add(self, ids: Sequence[str], texts: Sequence[str]) -> None:
        """Embed ``texts`` and store their vectors under ``ids`` (which must not be here yet)."""
        if not ids:
            return
        vectors = self._embedder.embed(texts)
        expected = (len(ids), self._embedder.dimension)
        if vectors.shape != expected:
            raise ValueError(
                f"the embedder {self._embedder.name!r} must return vectors of shape {expected}, got {vectors.shape}"
            )
        self._flat.add(vectors)
        self._ids.extend(ids)
        self._known.update(ids)
        self._unsaved += len(ids)

    def keep_only(self, ids: Iterable[str]) -> None:
        """Drop vectors whose record is gone."""
        import faiss

        wanted = set(ids)
        if self._known <= wanted:
            return
        kept = [place for place, name in enumerate(self._ids) if name in wanted]
        vectors = self._flat.reconstruct_n(0, len(self._ids))[kept]
        self._unsaved += len(self._ids) - len(kept)
        self._flat = faiss.IndexFlatIP(self._embedder.dimension)
        self._flat.add(vectors)
        self._ids = [self._ids[place] for place in kept]
        self._known = set(self._ids)

    def search(self, text: str, k: int) -> list[tuple[str, float]]:
        """Return up to ``k`` pairs (record id, cosine), best first, ties by id."""
        k = min(k, len(self._ids))
        if k < 1:
            return []
        query: Vectors = self._embedder.embed([text])
        scores, places = self._flat.search(query, k)
        found = [(self._ids[place], float(score)) for place, score in zip(places[0], scores[0], strict=True)]
        return sorted(found, key=lambda pair: (-pair[1], pair[0]))

    def save(self, *, force: bool = False) -> None:
        """Write the file if enough is new (an eighth, at least 64) or ``force`` is set and anything is.

        A folder that cannot be written is no error: the next process makes the index again.
        """
        if not self._unsaved or not (force or self._unsaved >= max(64, len(self._ids) // 8)):
            return
        import faiss

        payload = bytes.fromhex("".join(self._ids)) + faiss.serialize_index(self._flat).tobytes()
        header = json.dumps(self._expected_header(payload))
        try:
            _replace(self.file, header.encode() + b"\n" + payload)
        except OSError as error:
            _LOG.warning("index cache %s not written (%s); it will be made again when needed", self.file, error)
            return
        self._unsaved = 0

    def _load(self) -> None:
        import faiss

        payload = self._read_payload()
        if payload is None:
            self._flat = faiss.IndexFlatIP(self._embedder.dimension)
            return
        count, data = payload
        self._flat = faiss.deserialize_index(np.frombuffer(data, dtype=np.uint8, offset=_ID_BYTES * count))
        self._ids = [data[start : start + _ID_BYTES].hex() for start in range(0, _ID_BYTES * count, _ID_BYTES)]
        self._known = set(self._ids)

    def _read_payload(self) -> tuple[int, bytes] | None:
        """Return the number of vectors and what follows the header, if the file is whole and ours."""
        try:
            header, _, payload = self.file.read_bytes().partition(b"\n")
        except FileNotFoundError:
            return None
        except OSError as error:
            _LOG.warning("index cache %s not readable (%s); building it in memory", self.file, error)
            return None
        try:
            count = int(json.loads(header)["count"])
            whole = json.loads(header) == self._expected_header(payload, count)
        except (ValueError, KeyError, TypeError):  # no JSON, no UTF-8, another shape
            whole = False
        if not whole:
            _LOG.warning("index cache %s is damaged or of another version; building it again", self.file)
            return None
        return count, payload

    def _expected_header(self, payload: bytes, count: int | None = None) -> dict[str, object]:
        size = len(self._ids) if count is None else count
        return {**self._header, "count": size, "sha256": hashlib.sha256(payload).hexdigest()}


def index_file(embedder: Embedder, folder: Path) -> Path:
    """Return where the index of this embedder is cached."""
    return folder / f"index-{re.sub(r'[^A-Za-z0-9_.-]', '_', embedder.name)}.faiss"


def _replace(file: Path, data: bytes) -> None:
    for left in file.parent.glob(f"{file.name}.*.tmp"):  # by a process that was killed while writing
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > 3600:
                left.unlink()
    temporary = file.with_name(f"{file.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, file)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
