"""One program of a pool before anything is believed of it, and what its entry says in our terms."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spade_envs.memory.transfer import Stored
from spade_envs.record import PlayStatistics, source_id

MAX_BYTES = 1_000_000
"""Larger programs are refused unread."""

CODE_FIELDS = ("code", "source", "text")
PATH_FIELDS = ("path_in_dataset", "path", "file_path", "file", "filename", "file_name")
KINDS = ("game", "tool_use")
_TOOL_USE = re.compile(r"\b(?:ToolUseBaseEnv|ToolEnv)\b|\bself\._message_criteria\b|^\s*def tool_\w+\(", re.MULTILINE)
_SKILLS = (
    *("Mathematical Reasoning", "Logical Deduction", "Spatial Reasoning", "Pattern Recognition", "Optimization"),
    *("Causal Inference", "API Orchestration", "Data Retrieval", "State Modification", "Error Recovery"),
    *("Tool Selection", "Multi-Step Workflows"),
)
_SKILL_OF_SLUG = {re.sub(r"[^a-z]+", "_", skill.lower()): skill for skill in _SKILLS}
_KEPT_TEXT = 300  # characters of an entry's other fields that a record keeps


class PoolError(ValueError):
    """A pool cannot be read, written, fetched or pushed."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A program as it stands in a pool."""

    label: str  # unique in the pool
    code: str = ""
    problem: str = ""  # why there is no code
    expected_sha256: str = ""  # what the pool says of it
    actual_sha256: str = ""  # of the bytes that are there
    fields: Mapping[str, Any] = field(default_factory=dict)  # of EnvironmentRecord, without source, name, report
    stored: Stored | None = None  # what our own export says of it, its code taken as it is

    @property
    def intact(self) -> bool:
        """Whether the bytes, or the text as we normalise it, are those that the pool's SHA-256 speaks of."""
        expected = self.expected_sha256.lower().removeprefix("sha256:")
        return not expected or expected in (self.actual_sha256, source_id(self.code))


def sha256(content: bytes) -> str:
    """Return the hexadecimal SHA-256."""
    return hashlib.sha256(content).hexdigest()


def decode(content: bytes) -> str:
    """Return the text of a program's file."""
    return content.decode("utf-8", "replace")


def first_text(entry: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """Return the first non-empty string under one of ``names``; "" if there is none."""
    return next((value for name in names if isinstance(value := entry.get(name), str) and value), "")


def record_fields(entry: Mapping[str, Any], code: str, *, pool: str, label: str) -> dict[str, Any]:
    """Return the record's fields that an entry of a published pool gives.

    Names differ between pools; unknown ones are kept in ``meta["pool"]`` if they are short.
    """
    kind, skill = entry.get("kind"), first_text(entry, ("skill",))
    named = "tool_use" if _TOOL_USE.search(code) else "game"
    fields: dict[str, Any] = {
        "kind": kind if kind in KINDS else named,
        "skill": _SKILL_OF_SLUG.get(re.sub(r"[^a-z]+", "_", skill.lower()), skill),
        "hint": first_text(entry, ("hint",)),
        "generator": first_text(entry, ("generator", "model", "model_name")),
        "licence": first_text(entry, ("licence", "license")),
        "document_id": first_text(entry, ("document_id", "doc", "doc_id")),
        "statistics": statistics_of(entry),
    }
    kept = {key: value for key, value in entry.items() if key not in (*CODE_FIELDS, "hint") and _short(value)}
    fields["meta"] = {"pool": {**kept, "name": pool, "entry": label}}
    return fields


def statistics_of(entry: Mapping[str, Any]) -> PlayStatistics:
    """Return the play statistics in an entry: our own columns, or ``n_plays``, ``mean_reward``, ``solve_rate``.

    Numbers that cannot be (rates outside of [0, 1], more wins than plays) count as not given.
    """
    names = ("plain_plays", "plain_return", "plain_wins", "hinted_plays", "hinted_return", "hinted_wins")
    if all(_number(entry.get(name)) is not None for name in names):
        one, two = ([float(entry[name]) for name in part] for part in (names[:3], names[3:]))
        sums = PlayStatistics(int(one[0]), one[1], int(one[2]), int(two[0]), two[1], int(two[2]))
        possible = all(
            0 <= wins <= plays and abs(returns) <= plays + 1e-6
            for plays, returns, wins in (
                (sums.plain_plays, sums.plain_return, sums.plain_wins),
                (sums.hinted_plays, sums.hinted_return, sums.hinted_wins),
            )
        )
        return sums if possible else PlayStatistics()
    plays, rate, mean = (_number(entry.get(name)) for name in ("n_plays", "solve_rate", "mean_reward"))
    if not plays or plays < 1 or plays > 2**53 or rate is None or not 0 <= rate <= 1:
        return PlayStatistics()
    mean = rate if mean is None or abs(mean) > 1 else mean
    return PlayStatistics(int(plays), int(plays) * mean, round(int(plays) * rate))


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str):  # CSV
        try:
            value = float(value)
        except ValueError:
            return None
    try:
        return value if isinstance(value, int | float) and math.isfinite(value) else None
    except OverflowError:  # an integer beyond all floats
        return None


def _short(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, bool | int) or (isinstance(value, str) and len(value) <= _KEPT_TEXT)
