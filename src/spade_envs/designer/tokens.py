"""Cutting a text to a number of tokens, by the model's own tokenizer where it is at hand."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Cut = Callable[[str, int], str]
"""Text and a number of tokens → the longest beginning of it, up to a blank, that has no more tokens."""

ASCII_PER_TOKEN = 4
"""The estimate where no tokenizer is known: four ASCII characters, or one other character, are a token."""
_LONGEST_TOKEN = 64  # characters; a longer text is cut to this many for each token before it is tokenised
_LAST_WORD = re.compile(r"\S+\Z")


def estimated_tokens(text: str) -> int:
    """The number of tokens of ``text`` by the stated estimate."""
    ascii_characters = len(text.encode("ascii", "ignore"))
    return -(-ascii_characters // ASCII_PER_TOKEN) + len(text) - ascii_characters


def cut_estimated(text: str, tokens: int) -> str:
    """Cut ``text`` to about ``tokens`` tokens, by the stated estimate (:data:`Cut`)."""
    if estimated_tokens(text) <= tokens:
        return text
    quarters, place = tokens * ASCII_PER_TOKEN, 0
    for place, character in enumerate(text):  # noqa: B007  read after the loop
        quarters -= 1 if character.isascii() else ASCII_PER_TOKEN
        if quarters < 0:
            break
    return _whole_words(text, place)


def cut_for(model: Any) -> Cut:
    """Return the cut by the tokenizer of ``model`` (its attribute ``tokenizer``), else by the estimate.

    Endpoints do not show their tokenizer. One of transformers is used if it is a fast one, which knows offsets.
    """
    tokenizer = getattr(model, "tokenizer", None)
    if tokenizer is None or not getattr(tokenizer, "is_fast", False):
        return cut_estimated

    def cut(text: str, tokens: int) -> str:
        beginning = text[: tokens * _LONGEST_TOKEN]
        offsets = tokenizer(beginning, add_special_tokens=False, return_offsets_mapping=True, verbose=False)[
            "offset_mapping"
        ]
        if len(offsets) <= tokens:
            return beginning if len(beginning) == len(text) else _whole_words(text, len(beginning))
        return _whole_words(text, offsets[tokens][0])

    return cut


def _whole_words(text: str, place: int) -> str:
    """Cut at ``place``, or before the word that it is in; a text without blanks is cut where it is."""
    beginning = text[:place]
    if not text[place : place + 1].strip():
        return beginning.rstrip()
    return _LAST_WORD.sub("", beginning).rstrip() or beginning
