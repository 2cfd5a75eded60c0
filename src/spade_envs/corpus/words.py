"""Cutting documents."""

from __future__ import annotations

import re


def cut_words(text: str, limit: int) -> str:
    """Return the first ``limit`` words of ``text`` with the white space between them as it is."""
    end = 0
    for count, word in enumerate(re.finditer(r"\S+", text), start=1):
        if count > limit:
            return text[:end]
        end = word.end()
    return text
