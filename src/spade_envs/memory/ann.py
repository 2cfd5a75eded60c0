"""Which FAISS index holds the vectors, by their number: exact while that is quick, inverted lists above.

Up to ``EXACT_UP_TO`` vectors a flat index compares the query with each. Above, IVF (Sivic and Zisserman 2003; Jégou
et al. 2011): k-means cells of which the nearest sixteenth is searched, vectors stored in half precision. New vectors
join the cell they are nearest to; the cells are learnt anew whenever the number of vectors has doubled.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .embed import Vectors

EXACT_UP_TO = 10_000
_CELLS = 1.6  # cells per root of the number of vectors: 506 at 100,000
_PROBED = 16  # one of so many cells is searched,
_LEAST_PROBED = 16  # but at least so many
_SEED = 7


def empty(dimension: int) -> Any:
    """Return an index without vectors."""
    import faiss

    # A plain flat index: FAISS's own id map wakes all threads for each query, which costs milliseconds.
    return faiss.IndexFlatIP(dimension)


def extended(index: Any, vectors: Vectors, exact_up_to: int) -> Any:
    """Return an index with ``vectors`` behind those of ``index``, which must not be used any more."""
    size = index.ntotal + len(vectors)
    if size <= exact_up_to or (is_inverted(index) and index.nlist >= _cells(size) / 2**0.5):
        if len(vectors):
            index.add(vectors)
        return index
    return trained(np.concatenate([all_vectors(index), vectors]))


def trained(vectors: Vectors) -> Any:
    """Return an inverted index over ``vectors``, the same for the same ones."""
    import faiss

    dimension, cells = vectors.shape[1], _cells(len(vectors))
    index = faiss.IndexIVFScalarQuantizer(
        faiss.IndexFlatIP(dimension),
        dimension,
        cells,
        faiss.ScalarQuantizer.QT_fp16,
        faiss.METRIC_INNER_PRODUCT,
        False,
    )
    index.cp.seed, index.cp.niter = _SEED, 6
    index.cp.min_points_per_centroid, index.cp.max_points_per_centroid = 1, 64
    index.train(vectors)
    index.add(vectors)
    return index


def nearest(index: Any, query: Vectors, k: int) -> list[tuple[int, float]]:
    """Return up to ``k`` pairs (place, cosine) for a query of shape ``(1, d)``, in no order to rely on."""
    if is_inverted(index):
        enough = -(-20 * k * index.nlist // max(1, index.ntotal))  # cells that hold about 20 k vectors
        index.nprobe = int(min(index.nlist, max(_LEAST_PROBED, index.nlist // _PROBED, enough)))
    scores, places = index.search(query, k)
    return [
        (int(place), max(-1.0, min(1.0, float(score))))
        for place, score in zip(places[0], scores[0], strict=True)
        if place >= 0
    ]


def all_vectors(index: Any) -> Vectors:
    """Return the vectors in the order in which they were added."""
    inverted = is_inverted(index)
    if inverted:
        index.make_direct_map(True)
    vectors: Vectors = index.reconstruct_n(0, index.ntotal)
    if inverted:
        index.make_direct_map(False)
    return vectors


def is_inverted(index: Any) -> bool:
    """Whether the index is the approximate one."""
    return hasattr(index, "nlist")


def _cells(size: int) -> int:
    return max(1, round(_CELLS * math.sqrt(size)))
