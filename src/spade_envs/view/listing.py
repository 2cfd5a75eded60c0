"""Which records a table shows: filters and order as they stand in the address, applied to a memory's entries."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

from spade_envs.memory import Memory
from spade_envs.memory.overview import Entry, seqs_with_word
from spade_envs.view.texts import shown

PAGE = 50
_WORDS = 8  # of a search that count
_NEAREST = 200  # records that a search by meaning gives
_LOWEST = (-math.inf,)

Key = Callable[[Entry], Any]
ORDERS: dict[str, Key] = {
    "added": lambda entry: entry.seq,
    "name": lambda entry: entry.name.lower(),
    "skill": lambda entry: entry.skill.lower(),
    "kind": lambda entry: entry.kind,
    "generator": lambda entry: entry.generator.lower(),
    "plays": lambda entry: entry.statistics.plain_plays + entry.statistics.hinted_plays,
    "win": lambda entry: _LOWEST if entry.statistics.win_rate is None else (entry.statistics.win_rate,),
    "regret": lambda entry: _LOWEST if entry.statistics.regret is None else (entry.statistics.regret,),
    "findings": lambda entry: entry.findings,
    "date": lambda entry: entry.created_at,
}
"""Orders of the table by name. What was never played comes last in descending order."""


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked for. Empty texts and None filter nothing."""

    text: str = ""
    meaning: str = ""  # "1": by embedding, best first, instead of by words
    skill: str = ""
    kind: str = ""
    generator: str = ""
    played: str = ""  # "learnable", "mastered", "hopeless", "yes", "no"
    findings: str = ""  # "refuse", "warn", "none"
    archived: str = ""  # "", "only", "all"
    win_from: float | None = None
    win_to: float | None = None
    regret_from: float | None = None
    regret_to: float | None = None
    sort: str = "added"
    up: str = ""  # "1": ascending
    page: int = 1

    @classmethod
    def of(cls, values: Mapping[str, str]) -> Query:
        """Read an address; what is not understood is left out."""
        known: dict[str, Any] = {}
        for field in fields(cls):
            raw = values.get(field.name, "")[:500]
            if not raw:
                continue
            if field.name == "page":
                known["page"] = max(1, int(raw)) if raw.isdecimal() and len(raw) < 9 else 1
            elif field.name.endswith(("_from", "_to")):
                known[field.name] = _number(raw)
            elif field.name != "sort" or raw in ORDERS:
                known[field.name] = raw
        return cls(**known)

    def address(self, **changes: Any) -> str:
        """Return the query string of this query with some values replaced."""
        changed = replace(self, **changes)
        return urlencode(
            [
                (field.name, str(value))
                for field in fields(self)
                if (value := getattr(changed, field.name)) != field.default
            ]
        )

    @property
    def filters(self) -> bool:
        """Whether anything is left out."""
        return replace(self, sort="added", up="", page=1) != Query()


@dataclass(frozen=True, slots=True)
class Listed:
    """What a query found."""

    entries: Sequence[Entry]  # all of them, in order
    scores: Mapping[str, float]  # cosines, for a search by meaning

    def page(self, number: int) -> Sequence[Entry]:
        """Return the entries of a page, counted from 1."""
        return self.entries[(number - 1) * PAGE : number * PAGE]

    @property
    def pages(self) -> int:
        """How many pages there are, at least 1."""
        return max(1, -(-len(self.entries) // PAGE))


def listed(memory: Memory, entries: Sequence[Entry], query: Query) -> Listed:
    """Apply ``query`` to all ``entries`` of ``memory``."""
    scores: dict[str, float] = {}
    words = query.text.split()[:_WORDS]
    if words and query.meaning:
        scores = {record.id: score for record, score in memory.search(query.text, _NEAREST)}
        entries = [entry for entry in entries if entry.id in scores]
    tests = _tests(query)
    chosen = [entry for entry in entries if all(test(entry) for test in tests)]
    if not scores:
        for word in words:
            if not chosen:
                break
            hits, name = seqs_with_word(memory, word), word.lower().removeprefix("spade/").removesuffix("-v0")
            chosen = [entry for entry in chosen if entry.seq in hits or name in _label(entry)]
    if scores and query.sort == "added":
        chosen.sort(key=lambda entry: -scores[entry.id])
    elif query.sort == "added":
        chosen = chosen if query.up else chosen[::-1]
    else:
        chosen.sort(key=ORDERS[query.sort], reverse=not query.up)
    return Listed(chosen, scores)


def standing(entry: Entry) -> str:
    """Return in which band the plain win rate lies: unplayed, hopeless, learnable or mastered."""
    rate = entry.statistics.win_rate
    if rate is None:
        return "unplayed"
    return "hopeless" if rate < LEARNABLE[0] else "mastered" if rate > LEARNABLE[1] else "learnable"


@lru_cache(maxsize=4096)
def choice(value: str) -> str:
    """Return a skill, kind or generator as it stands in a list to choose from and in addresses."""
    return shown(value, 200)


LEARNABLE = (0.2, 0.8)
"""Win rates between these, both included, count as learnable (the paper's band for reporting)."""


def _tests(query: Query) -> list[Callable[[Entry], bool]]:
    tests: list[Callable[[Entry], bool]] = []
    if query.archived != "all":
        tests.append(lambda entry: entry.archived == (query.archived == "only"))
    if query.skill:
        tests.append(lambda entry: choice(entry.skill) == query.skill)
    if query.kind:
        tests.append(lambda entry: choice(entry.kind) == query.kind)
    if query.generator:
        tests.append(lambda entry: choice(entry.generator) == query.generator)
    if query.played in ("yes", "no"):
        tests.append(lambda entry: (entry.statistics.win_rate is not None) == (query.played == "yes"))
    elif query.played:
        tests.append(lambda entry: standing(entry) == query.played)
    if query.findings == "none":
        tests.append(lambda entry: not any(entry.findings))
    elif query.findings in ("refuse", "warn", "info"):
        tests.append(lambda entry: bool(getattr(entry.findings, query.findings)))
    for low, high, value in (
        (query.win_from, query.win_to, lambda entry: entry.statistics.win_rate),
        (query.regret_from, query.regret_to, lambda entry: entry.statistics.regret),
    ):
        if low is not None or high is not None:
            tests.append(_between(value, -math.inf if low is None else low, math.inf if high is None else high))
    return tests


def _between(value: Callable[[Entry], float | None], low: float, high: float) -> Callable[[Entry], bool]:
    def test(entry: Entry) -> bool:
        one = value(entry)
        return one is not None and low <= one <= high

    return test


def _label(entry: Entry) -> str:
    stem = entry.name.removesuffix("Env")
    return f"{entry.name} {stem}-{entry.id} {entry.skill} {entry.generator} {entry.run}".lower()


def _number(raw: str) -> float | None:
    try:
        value = float(raw)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
