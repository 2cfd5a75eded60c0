"""Text to vectors: WordLlama's static embedding, or hashed words where it is not installed.

Neither touches the network. Both average over words, so a vector says what a program is about and little of
how it is written; near-duplicates need the lexical confirmation of ``lexical.py``.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import logging
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]

MAX_CHARACTERS = 100_000
"""Longer texts are cut here."""


@runtime_checkable
class Embedder(Protocol):
    """Anything that turns texts into unit vectors, the same text always into the same vector."""

    @property
    def name(self) -> str:
        """Names the embedding: an index made under another name is not used."""
        ...

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return float32 vectors of shape ``(len(texts), dimension)``, of length 1 (0 for a text without words)."""
        ...


class HashedTokenEmbedder:
    """Square roots of word counts, each word hashed to a signed cell; for machines without WordLlama."""

    def __init__(self, dimension: int = 512) -> None:
        if dimension < 1:
            raise ValueError(f"dimension must be at least 1, got {dimension}")
        self.dimension = dimension
        self.name = f"hashed-{dimension}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See :meth:`Embedder.embed`."""
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float64)
        for row, text in zip(vectors, texts, strict=True):
            counts: dict[str, int] = {}
            for word in _WORD.findall(text[:MAX_CHARACTERS].lower()):
                counts[word] = counts.get(word, 0) + 1
            for word, count in counts.items():
                cell, sign = _cell(word, self.dimension)
                row[cell] += sign * count**0.5
        return normalised(vectors)


class WordLlamaEmbedder:
    """Mean of 256-dimensional static word vectors, from the weights in the ``wordllama`` wheel (MIT)."""

    dimension = 256

    def __init__(self) -> None:
        wordllama = _import_wordllama()
        # As cache folder its own package: the weights lie there, and a missing file is an error, not a download.
        package = Path(wordllama.__file__).parent
        model: Any = wordllama.WordLlama.load(cache_dir=package, dim=self.dimension, disable_download=True)
        self._table: NDArray[np.float32] = model.embedding
        self._tokenizer: Any = model.tokenizer
        self._tokenizer.no_padding()
        self.name = f"wordllama-{importlib.metadata.version('wordllama')}-{self.dimension}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """See :meth:`Embedder.embed`. Each text is pooled by itself, so batches do not change a vector."""
        clean = [text[:MAX_CHARACTERS].encode("utf-8", "replace").decode() for text in texts]
        vectors = np.zeros((len(clean), self.dimension), dtype=np.float64)
        for row, encoded in zip(vectors, self._tokenizer.encode_batch(clean, add_special_tokens=False), strict=True):
            if encoded.ids:
                ids = np.clip(encoded.ids, 0, len(self._table) - 1)
                row[:] = self._table[ids].mean(axis=0, dtype=np.float64)
        return normalised(vectors)


def default_embedder() -> Embedder:
    """WordLlama if it is installed, hashed words otherwise. One per process."""
    return _wordllama() if importlib.util.find_spec("wordllama") else HashedTokenEmbedder()


def normalised(vectors: NDArray[np.float64]) -> Vectors:
    """Scale rows to length 1; zero rows stay zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.ascontiguousarray(vectors / np.where(lengths > 0, lengths, 1.0), dtype=np.float32)


@lru_cache(maxsize=1)
def _wordllama() -> WordLlamaEmbedder:
    return WordLlamaEmbedder()


def _import_wordllama() -> Any:
    """Import the package, and undo that it sets up the root logger of the whole program."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    import wordllama

    root.handlers[:] = handlers
    root.setLevel(level)
    return wordllama


_WORD = re.compile(r"\w+")


@lru_cache(maxsize=65_536)
def _cell(word: str, dimension: int) -> tuple[int, int]:
    digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    value = int.from_bytes(digest, "little")
    return (value >> 1) % dimension, 1 if value & 1 else -1
