"""Comparing answers without evaluating strings.

Generated programs may use ``verify_answer``, and ``parse`` and ``verify`` under the published name
``math_verify``. Numbers, fractions (also LaTeX ``\\frac{a}{b}``), decimals, percentages, lists and plain text are
compared by value; nothing is ever passed to an evaluator, so an answer cannot run code or cost more than its length.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

MAX_CHARS = 2_000
"""Longer answers are compared as text only."""

MAX_DIGITS = 400
"""Digits (and size of an exponent) up to which a number is compared exactly."""

_NUMBER = re.compile(r"([+-]?)(\d+(?:\.\d*)?|\.\d+)(?:[eE]([+-]?\d{1,4}))?(%?)\Z")
_LATEX_FRACTION = re.compile(r"([+-]?)\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}\Z")
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?\Z")
_WRAPPERS = (("$", "$"), ("\\(", "\\)"), ("\\[", "\\]"), ("\\text{", "}"), ("\\boxed{", "}"))
_BRACKETS = {"(": ")", "[": "]", "{": "}"}


def verify_answer(expected: Any, answer: Any, *, tolerance: float = 1e-9) -> bool:
    """Return whether ``answer`` means the same as ``expected``.

    Numbers are equal when they differ by at most ``tolerance`` relative to the expected value (exactly, when both are
    written as integers or fractions). Lists are equal when their items are, in order; text when it is the same up to
    case and blanks.
    """
    return _equal(parse(expected), parse(answer), tolerance)


def verify(expected: Any, answer: Any, *_options: Any, **_named: Any) -> bool:
    """Return whether two values from :func:`parse` (or raw answers) agree. Extra options are accepted, unused."""
    return verify_answer(expected, answer)


def parse(value: Any, *_options: Any, **_named: Any) -> Any:
    """Return ``value`` as a :class:`~fractions.Fraction`, a ``tuple`` of parsed items, or normalised text."""
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, int):
        return Fraction(value)
    if isinstance(value, Fraction | tuple) and type(value) in (Fraction, tuple):
        return value if isinstance(value, Fraction) else tuple(parse(item) for item in value)
    if isinstance(value, float):
        return Fraction(value) if abs(value) < float("inf") else str(value)
    if isinstance(value, list | tuple):
        return tuple(parse(item) for item in value)
    if isinstance(value, set | frozenset):
        return tuple(sorted((parse(item) for item in value), key=str))
    if isinstance(value, dict):
        return tuple((str(key), parse(item)) for key, item in sorted(value.items(), key=lambda pair: str(pair[0])))
    return _parse_text(str(value))


def _parse_text(text: str) -> Any:
    text = text.strip()
    if len(text) > MAX_CHARS:
        return text
    text = _unwrap(text)
    number = _number(text)
    if number is not None:
        return number
    if text[:1] in _BRACKETS and text.endswith(_BRACKETS[text[0]]) and len(text) >= 2:
        return tuple(_parse_text(part) for part in _split(text[1:-1]))
    parts = _split(text)
    if len(parts) > 1 and all(_number(part.strip()) is not None for part in parts):
        return tuple(_number(part.strip()) for part in parts)
    return " ".join(text.strip("\"'").split()).lower()


def _unwrap(text: str) -> str:
    """Strip mathematical and text wrappers and a final full stop, e.g. ``$\\text{Yes}$.`` to ``Yes``."""
    for _ in range(8):
        before = text
        for start, end in _WRAPPERS:
            if text.startswith(start) and text.endswith(end) and len(text) >= len(start) + len(end):
                text = text[len(start) : len(text) - len(end)].strip()
        if text.endswith(".") and not text.endswith(".."):
            text = text[:-1].rstrip()
        if text == before:
            break
    return text


def _number(text: str) -> Fraction | None:
    text = text.strip().replace("\u2212", "-").replace("\\%", "%")
    if text.startswith("$"):
        text = text[1:].lstrip()
    if _GROUPED.match(text):
        text = text.replace(",", "")
    latex = _LATEX_FRACTION.match(text)
    if latex:
        return _ratio(latex[2], latex[3], latex[1])
    top, slash, bottom = text.partition("/")
    if slash:
        return _ratio(top, bottom, "")
    return _plain(text)


def _ratio(top: str, bottom: str, sign: str) -> Fraction | None:
    numerator, denominator = _plain(top.strip()), _plain(bottom.strip())
    if numerator is None or not denominator:
        return None
    return -numerator / denominator if sign == "-" else numerator / denominator


def _plain(text: str) -> Fraction | None:
    match = _NUMBER.match(text)
    if match is None or len(match[2]) > MAX_DIGITS or abs(int(match[3] or 0)) > MAX_DIGITS:
        return None
    value = Fraction(match[2]) * Fraction(10) ** int(match[3] or 0)
    if match[4]:
        value /= 100
    return -value if match[1] == "-" else value


def _split(text: str) -> list[str]:
    """Split at commas and semicolons outside brackets."""
    if not text.strip():
        return []
    parts, depth, start = [], 0, 0
    for index, char in enumerate(text):
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char in ",;" and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    return [*parts, text[start:]]


def _equal(expected: Any, answer: Any, tolerance: float) -> bool:
    if isinstance(expected, tuple) and isinstance(answer, tuple):
        return len(expected) == len(answer) and all(_equal(a, b, tolerance) for a, b in zip(expected, answer))
    if isinstance(expected, tuple) and len(expected) == 1:
        return _equal(expected[0], answer, tolerance)
    if isinstance(answer, tuple) and len(answer) == 1:
        return _equal(expected, answer[0], tolerance)
    if isinstance(expected, Fraction) and isinstance(answer, Fraction):
        if expected == answer:
            return True
        if expected.denominator == 1 and answer.denominator == 1:
            return False
        return abs(expected - answer) <= Fraction(tolerance) * max(Fraction(1), abs(expected))
    return type(expected) is type(answer) and bool(expected == answer)
