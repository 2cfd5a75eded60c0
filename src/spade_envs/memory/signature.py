"""What is kept of a program so that later ones can be compared with it without reading its source again.

A sketch is the bottom-k sample (Broder 1997; Cohen and Kaplan 2007) of the hashed multiset of runs of tokens: the
least 256 of its hashes. The Jaccard index of two programs is estimated from the part of the hash range that both
sketches cover. Programs of at most 256 runs are covered whole, so for them the value is exact; for longer ones its
standard error is at most sqrt(J (1 - J) / 256), .022 at J = .85.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..record import EnvironmentRecord
from . import lexical

Sketch = NDArray[np.uint32]
Elements = NDArray[np.uint64]

SKETCH = 256
"""Hashes kept of a program."""
MARGIN = 0.08
"""Estimates as near to a threshold as this (nearly four standard errors) are settled by the sources."""

_Number = TypeVar("_Number", np.uint32, np.uint64)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_LARGEST = np.iinfo(np.uint32).max


@dataclass(frozen=True, slots=True)
class Signature:
    """Hashes of a program's normalised tokens, with names, numbers and texts erased or (literal) only names."""

    fingerprint: str
    literal_fingerprint: str
    plain: Elements
    literal: Elements


def sign(source: str) -> Signature:
    """Return the signature of a program."""
    plain, literal = lexical.token_pair(source)
    return Signature(lexical.digest(plain), lexical.digest(literal), elements(plain), elements(literal))


def text_of(record: EnvironmentRecord) -> str:
    """Return the words that are embedded for a record."""
    return lexical.words(f"{record.skill}\n{record.name}\n{record.source}")


def sketch(of: Elements) -> Sketch:
    """Return the upper halves of the least ``SKETCH`` hashes, ascending."""
    return _distinct((of >> np.uint64(32)).astype(np.uint32))[:SKETCH]


def elements(tokens: Sequence[str]) -> Elements:
    """Return the hashes of the runs of ``lexical.SHINGLE`` tokens, ascending.

    Equal runs are numbered, so that a multiset becomes a set. A shorter program is one run.
    """
    hashes = np.fromiter(map(_hash, tokens), dtype=np.uint64, count=len(tokens))
    width = min(len(hashes), lexical.SHINGLE)
    runs = np.zeros(max(1, len(hashes) - lexical.SHINGLE + 1), dtype=np.uint64)
    for offset in range(width):
        runs = _mixed(runs + hashes[offset : offset + len(runs)])
    runs.sort()
    starts = np.concatenate([[True], runs[1:] != runs[:-1]])
    places = np.arange(len(runs))
    copies = places - np.maximum.accumulate(np.where(starts, places, 0))
    hashed = _mixed(runs + copies.astype(np.uint64) * _MULTIPLIER)
    hashed.sort()
    return _distinct(hashed)


def overlap(one: Elements, other: Elements) -> float:
    """Return the Jaccard index of two programs, in [0, 1]."""
    both = len(np.intersect1d(one, other, assume_unique=True))
    return both / (len(one) + len(other) - both)


def overlaps(mine: Sketch, others: Sequence[Sketch]) -> NDArray[np.float64]:
    """Return the Jaccard index of ``mine`` with each of ``others``, in [0, 1]; see :func:`is_exact`."""
    if not others:
        return np.zeros(0)
    sizes = np.array([len(one) for one in others])
    values = np.concatenate(others)
    owner = np.repeat(np.arange(len(others)), sizes)
    # A full sketch says nothing about hashes beyond its last one.
    limits = np.array([min(_covered(one), _covered(mine)) for one in others], dtype=np.uint32)
    valid = values <= limits[owner]
    places = np.minimum(np.searchsorted(mine, values), len(mine) - 1)
    both = np.bincount(owner, weights=valid & (mine[places] == values), minlength=len(others))
    theirs = np.bincount(owner, weights=valid, minlength=len(others))
    union = np.searchsorted(mine, limits, side="right") + theirs - both
    return np.asarray(both / np.maximum(union, 1.0), dtype=np.float64)


def is_exact(one: Sketch, other: Sketch) -> bool:
    """Whether the overlap of two sketches is the overlap of the programs, not an estimate."""
    return len(one) < SKETCH and len(other) < SKETCH


def to_bytes(one: Sketch) -> bytes:
    """Return the little-endian bytes that :func:`from_bytes` reads."""
    return one.astype("<u4").tobytes()


def from_bytes(data: bytes) -> Sketch:
    """Read a stored sketch."""
    return np.frombuffer(data, dtype="<u4").astype(np.uint32)


def _distinct(ascending: NDArray[_Number]) -> NDArray[_Number]:
    """What ``np.unique`` does, for sorted values."""
    first = np.concatenate([[True], ascending[1:] != ascending[:-1]])
    return np.compress(first, ascending)


def _covered(one: Sketch) -> Any:
    return one[-1] if len(one) >= SKETCH else _LARGEST


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64 (Steele et al. 2014), elementwise modulo 2^64."""
    values = values + _MULTIPLIER
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


@lru_cache(maxsize=65_536)
def _hash(token: str) -> int:
    digest = hashlib.blake2b(token.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")
