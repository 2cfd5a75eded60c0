"""Does a text give an answer away? Naturally occurring data is told from a leak."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

Occurrence = Literal["none", "element", "span", "lone", "labelled", "equal"]
"""How an answer occurs in a text, from harmless to blatant.

``element``: among several tokens or items of the same kind, as data or options are. ``span``: a piece of running
prose, as an extraction task has it. ``lone``: the only token of its kind, or a longer sequence that is no item of a
list. ``labelled``: called the answer. ``equal``: the text is the answer.
"""

_WRAPPERS = (
    re.compile(r"\\boxed\{(.*)\}\Z", re.DOTALL),
    re.compile(r"<answer>(.*)</answer>\Z", re.DOTALL),
)
_LABEL = (
    r"\b(?:answer|solution|secret(?:\s\w+)?|expected(?:\s\w+)?|correct(?:\s\w+)?|hidden(?:\s\w+)?|password|passcode|key\sis)"
    r"[\"']?\s*(?:is|was|are|=|:|->|→)?\s*[\"'`(\[]*"
)
_LABELLED = re.compile(_LABEL.replace("(?:is|was|are|=|:|->|→)?", "(?:is|was|are|=|:|->|→)") + r"\Z", re.IGNORECASE)
_LABEL_SPAN = 200  # characters before an answer in which its label begins
_LISTING = re.compile(r"\s*(?:/|\||,\s*\w+\s*(?:,|or\b)|or\b)")
"""After an option: "answer: yes/no" and "the answer is a, b or c" label nothing."""
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?\Z")
_TOKEN = re.compile(r"-?\d+(?:\.\d+)?|[A-Za-z]+")


def bare(text: str) -> str:
    r"""The text without surrounding ``\boxed{}`` or ``<answer>`` and blanks."""
    text = text.strip()
    for wrapper in _WRAPPERS:
        if match := wrapper.match(text):
            return match.group(1).strip()
    return text


def bare_solution(actions: Sequence[str]) -> str:
    """A solution as one text: its actions without wrappers, blanks between."""
    return " ".join(bare(action) for action in actions)


def occurrence(answer: str, text: str) -> Occurrence:
    """How ``answer`` occurs in ``text``; upper and lower case are the same, digits are matched as whole numbers."""
    needle, hay = _squash(answer), _squash(text)
    if not needle:
        return "none"
    if bare(hay).strip(" .!\"'") == needle or needle == hay:
        return "equal"
    if needle not in hay:  # saves compiling a pattern of its own for most answers
        return "none"
    places = list(_places(needle, hay))
    if not places:
        return "none"
    if any(_LABELLED.search(hay, max(0, a - _LABEL_SPAN), a) and not _LISTING.match(hay, b) for a, b in places):
        return "labelled"
    if len(_TOKEN.findall(needle)) <= 1:
        return _single(needle, hay, len(places))
    return _several(needle, hay, places[0])


def _places(needle: str, hay: str) -> Iterator[tuple[int, int]]:
    """Where :func:`bounded` would match, without compiling a pattern for each answer."""
    first, last = needle[0], needle[-1]
    start = hay.find(needle)
    while start >= 0:
        end = start + len(needle)
        before, after = hay[max(0, start - 1) : start], hay[end : end + 1]
        open_left = before in (".", "-") or _in_word(before) if first.isalnum() else first == "-" and _in_word(before)
        decimals = after == "." and hay[end + 1 : end + 2].isdecimal()
        if (before and open_left) or (last.isalnum() and (_in_word(after) or decimals)):
            start = hay.find(needle, start + 1)
        else:
            yield start, end
            start = hay.find(needle, end)


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _squash(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip().lower()


def bounded(needle: str) -> str:
    """Return a pattern that finds ``needle`` as a whole word or number."""
    left = r"(?<![\w.-])" if needle[:1].isalnum() else r"(?<!\w)" if needle[:1] == "-" else ""
    right = r"(?!\w)(?!\.\d)" if needle[-1:].isalnum() else ""
    return left + re.escape(needle) + right


def _kind(token: str) -> str:
    if _NUMBER.match(token):
        return "number"
    return "letter" if len(token) == 1 else "word"


def _single(needle: str, hay: str, count: int) -> Occurrence:
    """One token: lone if nothing else of its kind is there (words of prose are many of a kind)."""
    tokens = _TOKEN.findall(hay)
    others = {token for token in tokens if _kind(token) == _kind(needle) and token != needle}
    if count == 1 and not others and _kind(needle) == "number":
        return "lone"
    return "element"


def _several(needle: str, hay: str, span: tuple[int, int]) -> Occurrence:
    """Several tokens: an item of an enumeration, a span of prose, or a sequence that stands alone."""
    before, after = hay[: span[0]].rstrip(), hay[span[1] :].lstrip()
    separators = r"[,;|/\[\](){}\"'`:•*]|\bor\b"
    left_cut = not before or re.search(rf"(?:{separators}|\d[.)]|-)\s*\Z", before)
    right_cut = not after or re.match(rf"(?:{separators}|\d[.)]|-)", after)
    items = [item for item in re.split(r"[,;|/]|\bor\b|\"\s*\"|'\s*'", hay) if item.strip()]
    size = len(_TOKEN.findall(needle))
    alike = [item for item in items if abs(len(_TOKEN.findall(item)) - size) <= max(1, size // 2)]
    tokens = _TOKEN.findall(needle)
    if left_cut and right_cut and len(alike) >= 3:
        return "element"
    if all(_kind(token) == "number" for token in tokens) and (
        re.search(r"\d,?\Z", before) or re.match(r",?\s?-?\d", after)
    ):
        return "element"  # part of a longer row of numbers
    if all(_kind(token) == "word" for token in tokens):
        return "span"
    return "lone"
