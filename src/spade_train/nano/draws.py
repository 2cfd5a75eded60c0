"""Drawing specs from the grammar, and variations of a spec that are harder or easier."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence

from spade_train.nano.grammar import (
    DESIGN_WORDS,
    LOWS,
    MODULI,
    NUMBER_OPERATIONS,
    OPERATIONS,
    RANGES,
    UPDATES,
    WORD_OPERATIONS,
    Spec,
)

EASY = (0, 0, 0.30, 0.27, 0.18, 0.12, 0.07, 0.04, 0.02)
"""Weights of list sizes 0 to 8 for programs that a beginner can play."""
FIRST = (0, 0, 0.6, 0.4)
"""Weights of sizes for a player's first lessons, which have one operation."""
EVEN = (0, 0, 1, 1, 1, 1, 1, 1, 1)
COUNTS = (0.62, 0.3, 0.08)
"""Weights of one, two, three operations."""

_LAST = "total"  # makes one symbol of a list, so nothing comes after it
_FALLBACK = "reverse"
_MAX_SIZE = 8


def draw_spec(
    rng: random.Random,
    skill: str,
    words: Sequence[str] = (),
    topic: str = "",
    *,
    sizes: Sequence[float] = EASY,
    counts: Sequence[float] = COUNTS,
) -> Spec:
    """Draw a program of ``skill`` that uses ``words`` and, where it fits, ``topic``.

    Missing words are filled up from the designer's.
    """
    given = list(dict.fromkeys(words))
    pool = given + rng.sample([word for word in DESIGN_WORDS if word not in given], max(0, 4 - len(given)))
    title = rng.choice(given or pool)
    if skill == "guess":
        size = rng.choice(RANGES)
        return Spec(skill, title, modulus=size, turns=rng.randint(2, max_tries(size)), low=rng.choice(LOWS))
    if skill == "running":
        update = topic if topic in UPDATES else rng.choice(tuple(UPDATES))
        return Spec(skill, title, modulus=rng.choice(MODULI), turns=rng.randint(2, 5), update=update)
    names = draw_operations(rng, skill, topic, counts)
    size = rng.choices(range(len(sizes)), sizes)[0]
    kept: tuple[str, ...] = ()
    if skill != "numbers":
        room = min(len(pool), 6 if skill == "words" else 5)
        kept = tuple(pool[: rng.randint(min(4, room), room)])
        if title not in kept:
            kept = (*kept[:-1], title)
    if skill == "lookup":
        size = rng.choices((1, 2, 3, 4), (3, 4, 2, 1))[0]
    spec = Spec(skill, title, tuple((name, 0) for name in names), size, rng.choice(MODULI), words=kept)
    return fit(spec, rng)


def draw_operations(rng: random.Random, skill: str, topic: str, counts: Sequence[float]) -> list[str]:
    """Draw distinct operations, ``topic`` among them if it is one that the skill knows, ``total`` last."""
    pool = list(WORD_OPERATIONS if skill == "words" else NUMBER_OPERATIONS)
    count = rng.choices((1, 2, 3), counts)[0]
    if skill == "lookup":
        pool, count = [name for name in pool if name != "skip"], count - (topic not in pool)
    names = [topic] if topic in pool else []
    names += rng.sample([name for name in pool if name != topic], max(0, count - len(names)))
    rng.shuffle(names)
    return sorted(names, key=lambda name: name == _LAST)


def fit(spec: Spec, rng: random.Random) -> Spec:
    """Make size, modulus and the operations' numbers consistent, so that no program is trivial or empty."""
    if spec.skill in ("guess", "running"):
        return spec
    floor = {"numbers": 2, "words": 3, "lookup": 1}[spec.skill]
    most = len(spec.words) if spec.words else _MAX_SIZE
    size = max(floor, min(spec.size, most))
    while not _works(spec, size) and size < most:
        size += 1
    if not _works(spec, size):
        return fit(dataclasses.replace(spec, operations=spec.operations[1:] or ((_FALLBACK, 0),)), rng)
    modular = any(OPERATIONS[name].modular for name in spec.names)
    modulus = spec.modulus if modular else 10
    operations, length = [], size
    for name, number in spec.operations:
        if name == "rotate":
            limit = min(3, length - 1)
            number = number if 1 <= number <= limit else rng.randint(1, max(1, limit))
        elif name == "add":
            number = number if 1 <= number < modulus else rng.randint(1, modulus - 1)
        length = length - 1 if name == "drop" else (length + 1) // 2 if name == "skip" else length
        operations.append((name, number))
    return dataclasses.replace(spec, operations=tuple(operations), size=size, modulus=modulus)


def _works(spec: Spec, size: int) -> bool:
    """Whether every operation does something to a list of ``size`` and the answer is not a lone shown symbol."""
    if size < 4 and len({"reverse", "swap", "rotate"}.intersection(spec.names)) > 1:
        return False  # on two or three elements these undo each other
    if spec.skill == "words" and "sort" in spec.names and size >= len(spec.words):
        return False  # all words sorted are the same on every seed
    for name in spec.names:
        if size < OPERATIONS[name].minimum:
            return False
        size = size - 1 if name == "drop" else (size + 1) // 2 if name == "skip" else size
    return spec.skill == "lookup" or size > 1


def vary(spec: Spec, direction: int, rng: random.Random, topic: str = "") -> Spec:
    """Return a neighbour of ``spec``: harder for ``direction`` 1, easier for -1, of the same kind for 0."""
    if spec.skill == "guess":
        index = max(0, min(len(RANGES) - 1, RANGES.index(spec.modulus) + direction))
        size = RANGES[index]
        turns = max(2, min(spec.turns, max_tries(size)))
        return dataclasses.replace(spec, modulus=size, turns=turns, low=rng.choice(LOWS))
    if spec.skill == "running":
        return dataclasses.replace(spec, turns=max(2, min(5, spec.turns + direction)), modulus=rng.choice(MODULI))
    names = list(spec.operations)
    pool = WORD_OPERATIONS if spec.skill == "words" else NUMBER_OPERATIONS
    new = [name for name in pool if name not in spec.names and name not in (_LAST, "skip")]
    if direction > 0 and len(names) < 3 and rng.random() < 0.35:
        names.insert(0, (topic if topic in new else rng.choice(new), 0))
    elif direction < 0 and len(names) > 1 and rng.random() < 0.5:
        names.pop(0 if names[0][0] != topic else 1)
    else:
        spec = dataclasses.replace(spec, size=spec.size + direction)
    return fit(dataclasses.replace(spec, operations=tuple(names), modulus=rng.choice(MODULI)), rng)


def max_tries(size: int) -> int:
    """The most tries at which guessing blindly stays well below one half."""
    return min(5, size // 3)


def adopt(spec: Spec, other: Spec, topic: str = "") -> Spec:
    """Return ``spec`` with the words of ``other``, and with ``topic`` among its operations where it fits."""
    words = other.words if spec.words else ()
    if spec.skill == "running" and topic in UPDATES:
        spec = dataclasses.replace(spec, update=topic)
    operations = spec.operations
    if topic in (name for name, _ in other.operations) and topic not in spec.names:
        kept = [operation for operation in operations[1:] if (operation[0] == _LAST) <= (topic != _LAST)]
        operations = tuple(sorted([(topic, 0), *kept], key=lambda operation: operation[0] == _LAST))
    return dataclasses.replace(spec, title=other.title, words=words, operations=operations)
