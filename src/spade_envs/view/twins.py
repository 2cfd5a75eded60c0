"""Records that resemble each other: the nearest pairs of a memory, and two sources side by side."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spade_envs.memory import Memory, signature
from spade_envs.memory.overview import Entry
from spade_envs.view.texts import shown

_MOST = 4_000  # newest records that are compared, each with each
_BLOCK = 500  # rows of the comparison at once
_LINES = 1_500  # of each source
_WIDTH = 500  # characters of a line


class Pair(NamedTuple):
    """Two records that resemble each other."""

    one: Entry
    other: Entry
    cosine: float  # of the embeddings
    overlap: float  # Jaccard index of the normalised tokens, estimated for long programs


def nearest_pairs(memory: Memory, entries: Sequence[Entry], most: int = 100) -> tuple[list[Pair], int]:
    """Return up to ``most`` pairs, the likest first, and how many records were compared (the newest ones).

    Each record is paired with its nearest neighbour by embedding; the order is by overlap of the code, then by cosine.
    """
    ids, vectors = memory.vectors()
    known = {entry.id: entry for entry in entries}
    places = [place for place, id in enumerate(ids) if id in known]
    places = sorted(places, key=lambda place: known[ids[place]].seq)[-_MOST:]
    if len(places) < 2:
        return [], len(places)
    chosen = vectors[places]
    found: dict[tuple[int, int], float] = {}
    for start in range(0, len(places), _BLOCK):
        cosines = chosen[start : start + _BLOCK] @ chosen.T
        rows = np.arange(len(cosines))
        cosines[rows, start + rows] = -2.0
        for row, place in enumerate(cosines.argmax(axis=1)):
            pair = (min(start + row, int(place)), max(start + row, int(place)))
            found[pair] = min(1.0, float(cosines[row, place]))
    likest = sorted(found, key=lambda pair: (-found[pair], pair))[: 4 * most]
    members = [known[ids[places[place]]] for place in sorted({place for pair in likest for place in pair})]
    sketches: dict[int, signature.Sketch] = {}
    for first in range(0, len(members), 500):
        part = [entry.seq for entry in members[first : first + 500]]
        sketches |= {seq: signature.from_bytes(data) for seq, (data, _) in memory._store.signatures(part).items()}
    pairs = []
    for one_place, other_place in likest:
        one, other = known[ids[places[one_place]]], known[ids[places[other_place]]]
        overlap = 0.0
        if one.seq in sketches and other.seq in sketches:
            overlap = float(signature.overlaps(sketches[one.seq], [sketches[other.seq]])[0])
        pairs.append(Pair(one, other, found[one_place, other_place], overlap))
    pairs.sort(key=lambda pair: (-round(pair.overlap, 3), -pair.cosine, pair.one.seq))
    return pairs[:most], len(places)


class DiffLine(NamedTuple):
    """One line of two texts beside each other; a number is 0 where that side has no line."""

    kind: str  # "same", "changed", "removed", "added", "skipped"
    left_number: int
    left: str
    right_number: int
    right: str


def side_by_side(one: str, other: str, context: int = 3) -> list[DiffLine]:
    """Return two sources beside each other; equal stretches are cut down to ``context`` lines around changes.

    Looks at the first lines only (1,500 of each), since a comparison can cost the square of their number.
    """
    left, right = ([shown(line, _WIDTH) for line in text.split("\n")[:_LINES]] for text in (one, other))
    found: list[DiffLine] = []
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=True)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            lines = [DiffLine("same", i1 + k + 1, left[i1 + k], j1 + k + 1, right[j1 + k]) for k in range(i2 - i1)]
            if len(lines) > 2 * context + 1:
                skipped = DiffLine("skipped", 0, f"{len(lines) - 2 * context} equal lines", 0, "")
                lines = [*lines[:context], skipped, *lines[len(lines) - context :]]
            found += lines
            continue
        for k in range(max(i2 - i1, j2 - j1)):
            a, b = i1 + k if i1 + k < i2 else -1, j1 + k if j1 + k < j2 else -1
            kind = "changed" if a >= 0 and b >= 0 else "removed" if a >= 0 else "added"
            found.append(DiffLine(kind, a + 1, left[a] if a >= 0 else "", b + 1, right[b] if b >= 0 else ""))
    return found
