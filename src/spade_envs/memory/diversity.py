"""How different things are: the Vendi score, and draws that avoid versions of one idea. Pure functions."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray


def vendi_score(vectors: ArrayLike) -> float:
    """Return the effective number of different vectors, in [1, n]; 0 for none.

    The exponential of the Shannon entropy of the eigenvalues of K / n, K the cosine similarity kernel (Friedman and
    Dieng, "The Vendi Score", TMLR 2023): n equal vectors give 1, n orthogonal ones n. Divide by n to compare sets of
    different sizes. K / n = VVᵀ / n has the eigenvalues of VᵀV / n, so the cost is n·d² and no sampling is needed. A
    zero vector (a text without words) counts as unlike everything else.

    Args:
        vectors: shape ``(n, d)``, of any length; they are scaled to length 1.
    """
    rows = np.asarray(vectors, dtype=np.float64)
    if rows.ndim != 2:
        raise ValueError(f"vectors must have shape (n, d), got {rows.shape}")
    if not np.isfinite(rows).all():
        raise ValueError("vectors must be finite numbers")
    n = len(rows)
    lengths = np.linalg.norm(rows, axis=1)
    zeros = int((lengths == 0).sum())
    unit = rows[lengths > 0] / lengths[lengths > 0, None]
    small = unit @ unit.T if len(unit) <= unit.shape[1] else unit.T @ unit
    values = np.linalg.eigvalsh(small) / n if small.size else np.zeros(0)
    values = np.concatenate([values[values > 1e-12], np.full(zeros, 1.0 / max(1, n))])
    return float(np.exp(-(values * np.log(values)).sum())) if n else 0.0


def first_of_each(similarity: NDArray[np.float64], limit: int, same: float) -> list[int]:
    """Return the places, in order and at most ``limit``, whose similarity to every place returned before is < ``same``.

    Args:
        similarity: symmetric, shape ``(n, n)``; the order of its rows is the order of preference.
    """
    kept: list[int] = []
    for place in range(len(similarity)):
        if len(kept) >= limit:
            break
        if not kept or similarity[place, kept].max() < same:
            kept.append(place)
    return kept


def farthest_first(
    similarity: NDArray[np.float64], rng: random.Random, n: int, given: Sequence[int] = (), among: Sequence[int] = ()
) -> list[int]:
    """Draw ``n`` mutually dissimilar places: the first by ``rng``, each next one where the nearest is farthest.

    Greedy max-min selection (Gonzalez 1985, farthest-first traversal). Ties go to the earlier place.

    Args:
        similarity: symmetric, shape ``(m, m)``.
        given: places that are chosen already and not returned.
        among: places to draw from.
    """
    chosen, left = list(given), list(among)
    drawn: list[int] = []
    while left and len(drawn) < n:
        place = (
            min(left, key=lambda one: (similarity[one, chosen].max(), left.index(one))) if chosen else rng.choice(left)
        )
        left.remove(place)
        chosen.append(place)
        drawn.append(place)
    return drawn
