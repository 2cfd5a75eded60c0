"""A memory's embeddings in two dimensions: the two directions of largest variance (PCA, Pearson 1901)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]


def project(vectors: NDArray[np.float32]) -> tuple[Points, float]:
    """Return the vectors in the plane, shape ``(n, 2)``, and the share of the variance that the plane holds.

    By the eigenvectors of the covariance, so the cost grows linearly with n. Signs are fixed by the largest component
    of each direction, so the same vectors give the same picture.
    """
    if len(vectors) < 2 or vectors.shape[1] < 2:
        return np.zeros((len(vectors), 2)), 0.0
    centred = vectors.astype(np.float64) - vectors.mean(axis=0, dtype=np.float64)
    values, directions = np.linalg.eigh(centred.T @ centred)
    chosen = directions[:, [-1, -2]]
    largest = np.abs(chosen).argmax(axis=0)
    chosen = chosen * np.where(chosen[largest, [0, 1]] < 0, -1.0, 1.0)
    total = float(values.clip(min=0).sum())
    return centred @ chosen, float(values[-2:].clip(min=0).sum() / total) if total > 0 else 0.0
