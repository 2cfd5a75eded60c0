"""One document, and what every format offers: random access to its usable rows."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

logger = logging.getLogger("spade_envs.corpus")

TEXT_FIELDS = ("text", "orig_doc")
LOGGED_ROWS = 5
"""Bad rows that are logged one by one; the rest are only counted."""


class CorpusError(ValueError):
    """The corpus cannot be read, or holds no usable document."""


@dataclass(frozen=True, slots=True)
class Document:
    """One grounding document. ``meta`` holds the other fields of its row."""

    id: str
    text: str
    meta: Mapping[str, Any] = field(default_factory=dict)


class Rows(Protocol):
    """Random access to the usable rows of one format."""

    name: str
    skipped: Counter[str]
    fingerprint: str

    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> Document: ...


def document_of(row: Mapping[str, Any], text_field: str, fallback_id: str) -> Document:
    """Make a document of a row whose ``text_field`` holds a text."""
    meta = {key: value for key, value in row.items() if key not in (text_field, "id")}
    identity = row.get("id")
    return Document(str(identity) if isinstance(identity, str | int) else fallback_id, _clean(row[text_field]), meta)


def _clean(text: str) -> str:
    """Replace lone surrogates, which no file or database can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")
