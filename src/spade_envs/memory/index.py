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
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .embed import Embedder, Vectors

_LOG = logging.getLogger(__name__)
_FORMAT = 1
RECIPE = 1
"""Version of the text that is embedded (``lexical.words``); another one makes older files useless."""


class VectorIndex:
    """Record ids and their vectors. Keys are the first 64 bits of the id."""

    def __init__(self, embedder: Embedder, folder: Path) -> None:
        self._embedder = embedder
        safe = re.sub(r"[^\w.-]", "_", embedder.name)
        self.file = folder / f"index-{safe}.faiss"
        self._header = {
            "format": _FORMAT,
            "recipe": RECIPE,
            "embedder": embedder.name,
            "dimension": embedder.dimension,
        }
        self._index: Any = None
        self._keys: set[int] = set()
        self._unsaved = 0
        self._load()

    def __len__(self) -> int:
        return len(self._keys)

    def missing(self, ids: Iterable[str]) -> list[str]:
        """Return those of ``ids`` that have no vector here."""
        return [name for name in ids if _key(name) not in self._keys]

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
        keys = np.array([_key(name) for name in ids], dtype=np.int64)
        self._index.add_with_ids(vectors, keys)
        self._keys.update(keys.tolist())
        self._unsaved += len(ids)

    def keep_only(self, ids: Iterable[str]) -> None:
        """Drop vectors whose record is gone."""
        gone = self._keys - {_key(name) for name in ids}
        if gone:
            self._index.remove_ids(np.fromiter(gone, dtype=np.int64))
            self._keys -= gone
            self._unsaved += len(gone)

    def search(self, text: str, k: int) -> list[tuple[str, float]]:
        """Return up to ``k`` pairs (first 16 digits of the record id, cosine), best first, ties by id."""
        k = min(k, len(self._keys))
        if k < 1:
            return []
        query: Vectors = self._embedder.embed([text])
        scores, keys = self._index.search(query, k)
        found = [(_prefix(key), float(score)) for key, score in zip(keys[0], scores[0], strict=True) if score > -2]
        return sorted(found, key=lambda pair: (-pair[1], pair[0]))

    def save(self, *, force: bool = False) -> None:
        """Write the file if enough is new (an eighth, at least 64) or ``force`` is set and anything is.

        A folder that cannot be written is no error: the next process makes the index again.
        """
        if not self._unsaved or not (force or self._unsaved >= max(64, len(self._keys) // 8)):
            return
        import faiss

        payload = faiss.serialize_index(self._index).tobytes()
        header = json.dumps({**self._header, "sha256": hashlib.sha256(payload).hexdigest()})
        try:
            _replace(self.file, header.encode() + b"\n" + payload)
        except OSError as error:
            _LOG.warning("index cache %s not written (%s); it will be made again when needed", self.file, error)
            return
        self._unsaved = 0

    def _load(self) -> None:
        import faiss

        payload = self._read_payload()
        if payload is not None:
            self._index = faiss.deserialize_index(np.frombuffer(payload, dtype=np.uint8))
            self._keys = set(faiss.vector_to_array(self._index.id_map).tolist())
        else:
            self._index = faiss.IndexIDMap(faiss.IndexFlatIP(self._embedder.dimension))

    def _read_payload(self) -> bytes | None:
        try:
            header, _, payload = self.file.read_bytes().partition(b"\n")
        except FileNotFoundError:
            return None
        except OSError as error:
            _LOG.warning("index cache %s not readable (%s); building it in memory", self.file, error)
            return None
        try:
            values = json.loads(header)
        except ValueError:  # includes bytes that are no UTF-8
            values = None
        expected = {**self._header, "sha256": hashlib.sha256(payload).hexdigest()}
        if values != expected:
            _LOG.warning("index cache %s is damaged or of another version; building it again", self.file)
            return None
        return payload


def _key(record_id: str) -> int:
    return int.from_bytes(bytes.fromhex(record_id[:16]), "big", signed=True)


def _prefix(key: int) -> str:
    return int(key).to_bytes(8, "big", signed=True).hex()


def _replace(file: Path, data: bytes) -> None:
    temporary = file.with_name(f"{file.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, file)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
