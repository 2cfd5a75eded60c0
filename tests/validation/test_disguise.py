"""Answers in disguise are found, whatever the answer, and not seen where they are not."""

from __future__ import annotations

import base64
import codecs

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spade_envs.validation.disguise import disguises, in_words

FRAME = "A merchant has 17 crates and 23 barrels. {} How many are there? Answer in \\boxed{{}}."

NUMBERS = {
    "reversed": lambda n: str(n)[::-1],
    "in base64": lambda n: base64.b64encode(str(n).encode()).decode(),
    "in hexadecimal": hex,
    "in binary": lambda n: f"{n:b}",
    "spelled out in words": in_words,
    "taken apart": lambda n: "-".join(str(n)),
    "as character codes": lambda n: " ".join(str(ord(c)) for c in str(n)),
}
WORDS = {
    "reversed": lambda w: w[::-1],
    "in a letter-shift cipher": lambda w: codecs.encode(w, "rot13"),
    "in base64": lambda w: base64.b64encode(w.encode()).decode(),
    "in hexadecimal": lambda w: w.encode().hex(),
    "as character codes": lambda w: ", ".join(str(ord(c)) for c in w),
    "taken apart": lambda w: " ".join(w.upper()),
    "as first or last letters": lambda w: "\n" + "\n".join(f"{c}ome line" for c in w) + "\n",
}


def _names(answer: str, text: str) -> set[str]:
    return {disguise.name for disguise in disguises(answer, text)}


@settings(max_examples=60, deadline=None, derandomize=True)
@given(number=st.integers(300, 999_999_999), name=st.sampled_from(sorted(NUMBERS)))
def test_numbers_in_disguise(number: int, name: str) -> None:
    answer = str(number)
    if answer == answer[::-1]:
        return
    assert name in _names(answer, FRAME.format(f"(note: {NUMBERS[name](number)})"))
    assert name not in _names(answer, FRAME.format(""))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(word=st.text("abcdefghijklmnopqrstuvwxyz", min_size=5, max_size=12), name=st.sampled_from(sorted(WORDS)))
def test_words_in_disguise(word: str, name: str) -> None:
    if word == word[::-1] or len(set(word)) < 3:
        return
    assert name in _names(word, FRAME.format(f"({WORDS[name](word)})"))
    assert name not in _names(word, FRAME.format(""))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(answer=st.text(max_size=150), text=st.text(max_size=400))
def test_any_texts_are_read(answer: str, text: str) -> None:
    for disguise in disguises(answer, text):
        assert disguise.shown


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "zero"),
        (40, "forty"),
        (312, "three hundred twelve"),
        (1_000_001, "one million one"),
        (70_005, "seventy thousand five"),
    ],
)
def test_numbers_in_words(number: int, words: str) -> None:
    assert in_words(number) == words
