"""The index of a corpus: which rows are usable and where they are; built in one pass, kept in the cache."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from spade_envs.corpus.cache import written
from spade_envs.corpus.document import LOGGED_ROWS, logger

Numbers = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Index:
    """Usable rows in the order of the source: 24 bytes a row, whatever their length."""

    starts: Numbers  # byte position in the file, 0 where rows are found by number
    lengths: Numbers  # bytes
    numbers: Numbers  # line from 1, or row from 0
    skipped: Counter[str]
    fingerprint: str

    def save(self, target: Path) -> None:
        """Write the index to a file."""
        notes = json.dumps({"skipped": self.skipped, "fingerprint": self.fingerprint}).encode()
        with target.open("wb") as file:
            np.savez(
                file,
                starts=self.starts,
                lengths=self.lengths,
                numbers=self.numbers,
                notes=np.frombuffer(notes, np.uint8),
            )

    @classmethod
    def load(cls, source: Path) -> Index:
        """Read what :meth:`save` wrote.

        Raises:
            ValueError, KeyError, OSError: if the file is not an index.
        """
        with np.load(source, allow_pickle=False) as stored:
            notes = json.loads(stored["notes"].tobytes())
            return cls(
                stored["starts"], stored["lengths"], stored["numbers"], Counter(notes["skipped"]), notes["fingerprint"]
            )


def load_index(place: Path | None) -> Index | None:
    """Return the index in a file of the cache; None if there is none or it is damaged."""
    if place is None or not place.exists():
        return None
    try:
        return Index.load(place)
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        logger.warning("the index %s is damaged and made again: %s", place, error)
        return None


def keep_index(index: Index, place: Path | None) -> None:
    """Write an index into the cache; a failure costs the next opening its time, nothing else."""
    if place is None:
        return
    try:
        with written(place) as temporary:
            index.save(temporary)
    except OSError as error:
        logger.warning("the index %s could not be kept: %s", place, error)


class IndexBuilder:
    """Takes rows one after the other; :meth:`build` drops those whose text came before.

    Texts are compared by a 64-bit BLAKE2b of their words joined by single spaces: among a million different
    documents two fall together with a probability of 3e-8.
    """

    def __init__(self, name: str, unit: str, *, deduplicate: bool) -> None:
        self._name, self._unit, self._deduplicate = name, unit, deduplicate
        self._starts, self._lengths, self._numbers, self._texts = array("Q"), array("Q"), array("Q"), array("Q")
        self._digest = hashlib.blake2b(digest_size=16)
        self.skipped = Counter[str]()

    def read(self, content: bytes) -> None:
        """Let ``content`` count for the fingerprint."""
        self._digest.update(content)

    def add(self, number: int, text: str, start: int = 0, length: int = 0) -> None:
        """Note a usable row."""
        self._numbers.append(number)
        self._starts.append(start)
        self._lengths.append(length)
        if self._deduplicate:
            words = " ".join(text.split()).encode("utf-8", "replace")
            self._texts.append(int.from_bytes(hashlib.blake2b(words, digest_size=8).digest(), "little"))

    def skip(self, number: int, reason: str) -> None:
        """Count a row that is of no use, and log the first few."""
        self.skipped[reason] += 1
        if self.skipped.total() <= LOGGED_ROWS:
            logger.warning("%s, %s %s skipped: %s", self._name, self._unit, number, reason)

    def build(self) -> Index:
        """Return the index of the rows so far."""
        starts, lengths, numbers = (
            np.array(values, dtype=np.uint64) for values in (self._starts, self._lengths, self._numbers)
        )
        if self._deduplicate and len(numbers):
            _, first, inverse = np.unique(np.array(self._texts, np.uint64), return_index=True, return_inverse=True)
            original = first[inverse]
            again = np.flatnonzero(original != np.arange(len(numbers)))
            for place in again[:LOGGED_ROWS]:
                logger.warning("%s, %s %d skipped: repeats %s %d", self._name, self._unit, numbers[place],
                               self._unit, numbers[original[place]])  # fmt: skip
            if len(again):
                self.skipped["repeating another document"] += len(again)
                keep = np.sort(first)
                starts, lengths, numbers = starts[keep], lengths[keep], numbers[keep]
        return Index(starts, lengths, numbers, self.skipped, self._digest.hexdigest())
