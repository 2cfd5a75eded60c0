r"""Reading an observation the way someone would who does not understand the task.

These functions find what could be typed (boxed examples, listed options) and what might be an answer (numbers,
words, text after "the answer is"). Know-nothing policies are made of them.
"""

from __future__ import annotations

import re
from functools import lru_cache

_BOXED = re.compile(r"\\boxed\{\{?([^{}]{1,80})\}")
_TAGGED = re.compile(r"<answer>([^<>]{1,80})</answer>")
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?!\w)")
_WORD = re.compile(r"[A-Za-z]+(?:'[A-Za-z]+)*")
_LISTED = re.compile(
    r"(?:choose|choices?|options?|actions?|commands?|verbs?|moves?|exits?|suspects?|one of|allowed|answer|reply|"
    r"respond|from|among|either|letters?|say|type|use|pick|play)\b(?: with| from| are| is| of)?\s*:?\s*"
    r"([^.\n?!]{3,300})",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"(?<!\w)(?:'([a-z][\w -]{0,29})'|\"([a-z][\w -]{0,29})\"|`([a-z][\w -]{0,29})`)(?!\w)")
_SLASHED = re.compile(r"\b[\w-]+(?:\s?[/|]\s?[\w-]+)+\b")
_LETTERED = re.compile(r"(?:^|[\n(;,]\s*|\s{2,})([A-Z]|\d{1,2})[.):]\s", re.MULTILINE)
_LEADING = re.compile(r"\A(?:(?:with|one of|either|from|among|the)\s+)+", re.IGNORECASE)
_SPLIT = re.compile(r"\s*(?:,|/|\||;|\bor\b|\band\b)\s*")
PLACEHOLDER = re.compile(r"<\w+>|\b(?:[A-Z]{3,}|[a-zNXYKRC]|row|col|column|num|number|index|amount|count)\b")
_TOLD = re.compile(
    r"\b(?:answer|solution|secret(?: \w+)?|expected|correct(?: \w+)?|hidden(?: \w+)?|code|password)\s*"
    r"(?:is|was|were|should be|would be|:|=|->)\s*[\"'`(\[]*([^\s\"'`)\],;]{1,80})",
    re.IGNORECASE,
)
_PLACEHOLDERS = {"...", "…", "answer", "your answer", "x", "n"}
MAX_OPTIONS = 12
MAX_READ = 4_000
"""Characters of an observation that are looked at for options and words."""


def numbers(text: str) -> list[str]:
    """Numbers in ``text``, in order."""
    return _NUMBER.findall(text[-MAX_READ:])


def words(text: str) -> list[str]:
    """Words in ``text``, in order."""
    return _WORD.findall(text[:MAX_READ])


def examples(text: str) -> list[str]:
    r"""Contents of ``\boxed{…}`` and ``<answer>…</answer>`` in ``text``, placeholders such as "..." left out."""
    found = [match.strip() for match in (*_BOXED.findall(text[:MAX_READ]), *_TAGGED.findall(text[:MAX_READ]))]
    return list(dict.fromkeys(item for item in found if item and item.lower() not in _PLACEHOLDERS))


def patterns(text: str) -> list[str]:
    """Examples that have placeholders for numbers, such as "row,col" or "buy N"."""
    return [example for example in examples(text) if PLACEHOLDER.search(example)]


def told(text: str) -> str | None:
    """What the text itself calls the answer (last mention), without final full stops, or None."""
    matches = _TOLD.findall(text[-MAX_READ:])
    return matches[-1].rstrip(".!?") or None if matches else None


@lru_cache(maxsize=4096)
def options(text: str) -> tuple[str, ...]:
    """What the text offers to choose from, most explicit first; at most :data:`MAX_OPTIONS`."""
    text = text[:MAX_READ]
    found: list[str] = []
    for example in examples(text):
        parts = [part for part in re.split(r"[/|]", example) if part.strip()]
        found += [part.strip() for part in parts]
    for match in _SLASHED.findall(text):
        found += [part.strip() for part in re.split(r"[/|]", match)]
    if len(letters := _LETTERED.findall(text)) >= 2:
        found += letters
    for match in _LISTED.findall(text):
        parts = [_LEADING.sub("", part.strip(" \"'`[](){}*:")) for part in _SPLIT.split(match)]
        parts = [part for part in parts if 0 < len(part) <= 30 and "\\" not in part and len(part.split()) <= 3]
        if len(parts) >= 2:
            found += parts
    if not found:
        found = [match[match.lastindex or 0] for match in _QUOTED.finditer(text)]
    return tuple(dict.fromkeys(found))[:MAX_OPTIONS]


_CHOICE = re.compile(r"^[ \t]*(?:\(?([A-Z]|\d{1,2})[.):]|[-*•])[ \t]+(\S.*?)[ \t]*$", re.MULTILINE)
_MARK = re.compile(r"\*|✓|✔|√|<-|←|\[x\]|\((?:correct|right|true|answer)\)|(?<=\w)!", re.IGNORECASE)


def choices(text: str) -> list[tuple[str, str]]:
    """Lines of a list to choose from: (letter or number or "", text)."""
    found = _CHOICE.findall(text[:MAX_READ])
    return found if 2 <= len(found) <= MAX_OPTIONS else []


def marked(text: str) -> str | None:
    """The one choice that carries a mark such as an asterisk, by its letter if it has one; else None."""
    found = [(letter, said) for letter, said in choices(text) if _MARK.search(said)]
    return (found[0][0] or _MARK.sub("", found[0][1]).strip()) if len(found) == 1 else None


def longest_choice(text: str) -> str | None:
    """The longest choice, by its letter if it has one; None where there is no list."""
    found = max(choices(text), key=lambda choice: len(choice[1]), default=None)
    return None if found is None else found[0] or found[1]
