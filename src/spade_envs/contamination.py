"""Whether a text holds a benchmark's question: then nothing should be trained on it.

Two looks. *n-grams*: 13 words in a row in common (Brown et al. 2020, arXiv 2005.14165, appendix C), fewer for a short
question. *Paraphrases*: a passage whose embedding is close to a question's and that holds most of its longer words;
the second condition because static embeddings of mere neighbours are close too.

Not covered: translations, and questions whose numbers alone were changed beyond what both looks see.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from spade_envs.corpus import Document
from spade_envs.memory.embed import Embedder, default_embedder

_WORD = re.compile(r"[^\W_]+")
_FEWEST = 8  # words of a question that is looked for by n-grams; fewer say too little
_WINDOW, _STRIDE = 80, 40  # words of a passage
_LONG = 4  # letters of a word that tells questions apart
_DRAWS = 64


class Hit(NamedTuple):
    """A benchmark's question in a text."""

    question: str  # its id
    kind: str  # "n-gram" or "paraphrase"
    score: float  # words in a row, or cosine
    excerpt: str

    def __str__(self) -> str:
        return f"holds the benchmark question {self.question} ({self.kind}, {self.score:.3g}): {self.excerpt!r}"


class ContaminationGuard:
    """Looks for questions of benchmarks in texts.

    Args:
        questions: texts by id, such as ``aime-2026/3``.
        words: in a row that must be in common.
        similarity: cosine from which a passage may be a paraphrase.
        overlap: share of the question's longer words that it must hold besides.
        embedder: for paraphrases; by default that of the memory.
    """

    def __init__(
        self,
        questions: Mapping[str, str],
        *,
        words: int = 13,
        similarity: float = 0.85,
        overlap: float = 0.7,
        embedder: Embedder | None = None,
    ) -> None:
        if words < 2 or not 0 < similarity <= 1 or not 0 < overlap <= 1:
            raise ValueError("words must be at least 2, similarity and overlap in (0, 1]")
        self.questions = {key: text for key, text in questions.items() if text.strip()}
        self._similarity, self._overlap = similarity, overlap
        split = {key: _words(text) for key, text in self.questions.items()}
        # Instructions that many questions share are no question.
        often = max(3, len(split) // 10)
        counts = Counter(gram for found in split.values() for gram in set(_grams(found, min(words, len(found)))))
        self._grams: dict[int, dict[tuple[str, ...], str]] = {}
        for key, found in split.items():
            length = min(words, len(found))
            if length >= min(_FEWEST, words):
                known = self._grams.setdefault(length, {})
                known.update((gram, key) for gram in _grams(found, length) if counts[gram] <= often)
        seen = Counter(word for found in split.values() for word in set(found))
        self._common = frozenset(word for word, count in seen.items() if count > max(3, len(split) // 2))
        own = [self._own(found) for found in split.values()]
        self._keys = list(split)
        self._long = [_long(found) for found in own]
        self._embedder = embedder or default_embedder()
        self._vectors = self._embedder.embed([" ".join(found) for found in own]) if split else None

    @property
    def fingerprint(self) -> str:
        """Changes with the questions."""
        return hashlib.sha256(json.dumps(sorted(self.questions.items())).encode()).hexdigest()[:12]

    def check(self, text: str) -> Hit | None:
        """Return the first question found in ``text``, None if there is none."""
        words = _words(text)
        for length, known in self._grams.items():
            for gram in _grams(words, length):
                if gram in known:
                    return Hit(known[gram], "n-gram", length, " ".join(gram))
        return self._paraphrase(words)

    def why(self, text: str) -> str:
        """Say which question ``text`` holds; "" if none."""
        hit = self.check(text)
        return "" if hit is None else str(hit)

    def _own(self, words: list[str]) -> list[str]:
        return [word for word in words if word not in self._common]

    def _paraphrase(self, words: list[str]) -> Hit | None:
        if self._vectors is None or not words:
            return None
        starts = range(0, max(1, len(words) - _WINDOW + _STRIDE), _STRIDE)
        passages = [words[start : start + _WINDOW] for start in starts]
        vectors = self._embedder.embed([" ".join(self._own(passage)) for passage in passages])
        close = vectors @ self._vectors.T
        for place, row in np.argwhere(close >= self._similarity):
            wanted = self._long[row]
            held = len(wanted & set(passages[place])) / len(wanted) if wanted else 0.0
            if len(wanted) >= _FEWEST and held >= self._overlap:
                return Hit(self._keys[row], "paraphrase", float(close[place, row]), " ".join(passages[place][:20]))
        return None


class _Sampled(Protocol):
    name: str
    fingerprint: str

    def sample(self, seed: int, index: int) -> Document: ...


class CleanCorpus:
    """A corpus whose documents hold no benchmark question: for one that does another one is drawn.

    Which one depends on the seed and the index alone, so a resumed run draws the same documents.
    """

    def __init__(self, corpus: _Sampled, guard: ContaminationGuard) -> None:
        self._corpus, self._guard = corpus, guard
        self.name = corpus.name
        self.fingerprint = f"{corpus.fingerprint}, without questions {guard.fingerprint}"
        self.hits: dict[str, Hit] = {}  # what was passed over, by document

    @property
    def skipped(self) -> dict[str, int]:
        """What was left out so far, by reason: what the corpus could not read, and documents with questions."""
        found = dict(getattr(self._corpus, "skipped", {}))
        return found | ({"holds a benchmark question": len(self.hits)} if self.hits else {})

    def sample(self, seed: int, index: int) -> Document:
        """Return the ``index``-th document of the seeded order, or one in its stead.

        Raises:
            ValueError: if no clean document is found in many draws.
        """
        for draw in range(_DRAWS):
            document = self._corpus.sample(seed if not draw else seed ^ (draw << 20), index)
            hit = self.hits.get(document.id) or self._guard.check(document.text)
            if hit is None:
                return document
            self.hits[document.id] = hit
        raise ValueError(f"corpus {self.name}: {_DRAWS} documents in a row hold benchmark questions, e.g. {hit}")


def read_questions(paths: Iterable[str | Path]) -> dict[str, str]:
    """Read JSONL files with ``id`` and ``text`` in each line, as ``spade eval questions`` writes them.

    Raises:
        ValueError: if a file is missing or a line is something else.
    """
    questions = {}
    for path in map(Path, paths):
        if not path.is_file():
            raise ValueError(f"{path} does not exist: expected JSON lines with id and text (spade eval questions)")
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                questions[str(row["id"])] = str(row["text"])
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{path}, line {number}: expected an object with id and text: {error!r}") from error
    return questions


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _grams(words: list[str], length: int) -> Iterable[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(length))) if length else ()


def _long(words: Iterable[str]) -> frozenset[str]:
    return frozenset(word for word in words if len(word) >= _LONG)
