"""Dropping what a model thought before it answered."""

from __future__ import annotations

import re

_TAGS = "think|thinking|reasoning|thought"
_THOUGHT = re.compile(rf"<({_TAGS})>.*?</\1>", re.DOTALL)
_END = re.compile(rf"</(?:{_TAGS})>")
_START = re.compile(rf"^[ \t]*<(?:{_TAGS})>", re.MULTILINE)
_OPENED = re.compile(rf"<(?:{_TAGS})>\s*\Z")


def without_thoughts(text: str) -> str:
    """Return the answer in ``text``; "" if the thinking never ended.

    Templates often open the thought themselves, so a closing tag may stand alone: all before it is thought.
    """
    if "<" not in text:
        return text
    answer = _THOUGHT.sub("", text)
    for end in list(_END.finditer(answer))[-1:]:
        answer = answer[end.end() :]
    if start := _START.search(answer):
        answer = answer[: start.start()]
    return answer


def opened_thought(prompt: str) -> str:
    """Return the tag, and the space after it, if the last words of a prompt begin a thought; else nothing.

    Before a reply to such a prompt it makes a thought that never ended visible as one.
    """
    found = _OPENED.search(prompt)
    return found[0] if found else ""
