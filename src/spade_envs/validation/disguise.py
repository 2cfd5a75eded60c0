"""Answers in disguise: reversed, encoded, spelled out, taken apart, as first letters.

Each disguise is looked for by what the answer would look like, so that a text of any size costs a few searches.
Whether finding one is a fault is for the probes to say: where the task *is* to decode, it must be there.
"""

from __future__ import annotations

import base64
import binascii
import re
import string
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from spade_envs.validation.occurrence import bounded

MAX_READ = 20_000
"""Characters of a text that are looked at, half of them from its end if it is longer."""
_MAX_ANSWER = 120
_SHORT = 3  # shorter answers stand in most texts by chance
_LETTERS = 4

_ENCODED = re.compile(r"[A-Za-z0-9+/_-]{4,400}={0,2}")
_WORD = re.compile(r"[a-z]+")
_NO_LETTER = re.compile(r"[^a-z]+")
_BETWEEN = r"[\s\-_.,|/:;•*'\"()\[\]]{1,4}"
_RUN = re.compile(rf"(?<![a-z0-9])[a-z0-9](?:{_BETWEEN}[a-z0-9](?![a-z0-9]))+")
_NUMBERS = re.compile(rf"(?<!\d)\d{{1,7}}(?:{_BETWEEN}\d{{1,7}}(?!\d))+")
_SENTENCE = re.compile(r"(?:^|[.!?]\s+|\n\s*)(?:[-*•\d.)]\s*)*([A-Za-z])[^.!?\n]*([A-Za-z])?")
_AND = re.compile(r"[\s\-,]+(?:and[\s\-]+)?")
_ONES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_ONES += ["thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_ROMAN = {1000: "M", 900: "CM", 500: "D", 400: "CD", 100: "C", 90: "XC", 50: "L", 40: "XL"}
_ROMAN |= {10: "X", 9: "IX", 5: "V", 4: "IV", 1: "I"}
_ALPHABET = string.ascii_lowercase


@dataclass(frozen=True, slots=True)
class Disguise:
    """How an answer is hidden, the words of a task that is about that, and where it stands in the text."""

    name: str
    task: re.Pattern[str]
    shown: str


_TASKS = {
    "reversed": r"revers|backward|mirror|other way|right.to.left|flip|palindrom|last to first|swap|upside",
    "in base64": r"base.?64|decod|encod",
    "in a letter-shift cipher": r"cipher|shift|caesar|rot.?\d|decod|encod|crypt|alphabet|places? (?:for|back)|atbash",
    "in hexadecimal": r"\bhex|base.?16|decod|convert",
    "in binary": r"binar|\bbits?\b|base.?(?:2|two)\b|convert",
    "as character codes": r"ascii|\bcodes?\b|unicode|decod|encod|alphabet|characters?\b|position|replace",
    "spelled out in words": r"in words|spell|spelt|written out|convert|write .{1,20} in digits|as digits|numeral",
    "in Roman numerals": r"roman|numeral|convert",
    "taken apart": r"\bjoin|concaten|together|separat|letters?\b|combin|digits? of|assembl|compress|tiles?\b|form",
    "as first or last letters": r"acrostic|initial|(?:first|last) letter|letters? of|beginning",
}
_TASK = {name: re.compile(words, re.IGNORECASE) for name, words in _TASKS.items()}


def disguises(answer: str, text: str) -> list[Disguise]:
    """Return the disguises in which ``answer`` stands in ``text``; plain occurrences are not among them."""
    answer = answer.strip()
    if not 2 <= len(answer) <= _MAX_ANSWER or len(set(answer)) < 2:
        return []
    if len(text) > MAX_READ:
        text = text[: MAX_READ // 2] + "\n" + text[-MAX_READ // 2 :]
    found: list[Disguise] = []
    for name, shown in _search(answer, text):
        if shown and all(name != other.name for other in found):
            found.append(Disguise(name, _TASK[name], shown))
    return found


def _search(answer: str, text: str) -> Iterator[tuple[str, str]]:
    low, needle = text.lower(), answer.lower()
    number = int(answer) if answer.isascii() and answer.isdigit() and len(answer) <= 9 else None
    if len(needle) >= _SHORT and needle != needle[::-1]:
        yield "reversed", _whole(needle[::-1], low)
    yield "in base64", _base64(needle, text)
    if len(needle) >= _LETTERS and needle.replace(" ", "").isalpha() and needle.isascii():
        for shift in range(1, 26):
            table = str.maketrans(_ALPHABET, _ALPHABET[shift:] + _ALPHABET[:shift])
            yield "in a letter-shift cipher", _whole(needle.translate(table), low)
        yield "in a letter-shift cipher", _whole(needle.translate(str.maketrans(_ALPHABET, _ALPHABET[::-1])), low)
        yield "as character codes", _row([ord(c) - 96 for c in needle if c != " "], text)
        yield "as first or last letters", _initials(needle.replace(" ", ""), text)
    if len(needle) >= _SHORT:
        yield "in hexadecimal", _whole(answer.encode().hex(), low.replace(" ", ""), anywhere=True)
        yield "as character codes", _row([ord(c) for c in answer], text) or _row([ord(c) for c in needle], text)
        if " " not in needle and needle.isalnum():
            yield "taken apart", _apart(needle, low)
    if number is not None:
        if number > 9:
            yield "in hexadecimal", _whole(f"0x{number:x}", low) or _whole(f"0x{number:04x}", low)
            if not f"{number:x}".isdigit():
                yield "in hexadecimal", _whole(f"{number:x}", low)
            yield "spelled out in words", _spelled(number, low)
        if number > 7:
            yield "in binary", _whole(f"{number:b}", low.replace("0b", ""))
        if 5 < number < 4000:
            yield "in Roman numerals", _whole(_roman(number), text)


def _whole(needle: str, text: str, anywhere: bool = False) -> str:
    if len(needle) < 2 or needle not in text:
        return ""
    return needle if anywhere or re.search(bounded(needle), text) else ""


def _base64(needle: str, text: str) -> str:
    for match in _ENCODED.finditer(text):
        body = match[0].rstrip("=")
        if body.isdigit() or (body.isalpha() and body.islower()):
            continue  # a number or a word of prose, which decodes to nothing readable
        try:
            raw = base64.b64decode(body + "=" * (-len(body) % 4), altchars=b"-_" if set("-_") & set(body) else None)
            plain = raw.decode("utf-8").lower()
        except (binascii.Error, ValueError):
            continue
        if needle in plain and plain.isprintable():
            return match[0]
    return ""


@lru_cache(maxsize=256)
def _runs(pattern: re.Pattern[str], text: str) -> list[tuple[str, list[str]]]:
    """Single characters, or numbers, that follow each other with separators between: as shown, and one by one."""
    return [(match[0], re.findall(r"[a-z0-9]+", match[0])) for match in pattern.finditer(text)]


def _row(codes: list[int], text: str) -> str:
    """The codes one after the other among the numbers of the text."""
    if len(codes) < _SHORT:
        return ""
    wanted = " " + " ".join(map(str, codes)) + " "
    return next((shown for shown, parts in _runs(_NUMBERS, text) if wanted in f" {' '.join(parts)} "), "")


def _apart(needle: str, low: str) -> str:
    return next((shown for shown, parts in _runs(_RUN, low) if needle in "".join(parts)), "")


def _initials(needle: str, text: str) -> str:
    if len(needle) < _LETTERS:
        return ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    sentences = _SENTENCE.findall(text)
    candidates = (
        "".join(line[0] for line in lines),
        "".join(line.rstrip(".,;!?")[-1:] for line in lines),
        "".join(first for first, _ in sentences),
    )
    words = "".join(word[0] for word in _WORD.findall(text.lower())) if len(needle) > _LETTERS + 1 else ""
    return needle if any(needle in letters.lower() for letters in (*candidates, words)) else ""


def _spelled(number: int, low: str) -> str:
    for words in (in_words(number), " ".join(_ONES[int(digit)] for digit in str(number))):
        likely = len(words) > _LETTERS and all(word in low for word in words.split())
        if likely and f" {words} " in f" {_NO_LETTER.sub(' ', _AND.sub(' ', low))} ":
            return words
    return ""


def in_words(number: int) -> str:
    """Return a number below a thousand million in English words, without "and" and hyphens."""
    if number < 20:
        return _ONES[number]
    if number < 100:
        return _TENS[number // 10 - 2] + (f" {_ONES[number % 10]}" if number % 10 else "")
    for size, name in ((1_000_000, "million"), (1000, "thousand"), (100, "hundred")):
        if number >= size:
            rest = f" {in_words(number % size)}" if number % size else ""
            return f"{in_words(number // size)} {name}{rest}"
    raise AssertionError(number)


def _roman(number: int) -> str:
    text = ""
    for value, letters in _ROMAN.items():
        text += letters * (number // value)
        number %= value
    return text
