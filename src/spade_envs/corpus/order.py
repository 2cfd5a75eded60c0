"""An order of drawing that is computed, not stored."""

from __future__ import annotations

import hashlib

_ROUNDS = 8
_MASK = (1 << 64) - 1


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
