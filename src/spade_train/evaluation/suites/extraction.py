"""The final answer in a reply."""

from __future__ import annotations

import re

from spade_envs.source_text.thoughts import without_thoughts

_TAGGED = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)


def final_answer(text: str) -> str:
    """Return what a reply gives as its answer: the last ``\\boxed{…}`` or ``<answer>…</answer>``, whichever is later.

    What was thought before is left out; a reply without either has no answer: "".
    """
    text = without_thoughts(text)
    tagged = list(_TAGGED.finditer(text))
    start = text.rfind("\\boxed{")
    if tagged and tagged[-1].end() > start:
        inner = tagged[-1].group(1).strip()
        whole = boxed(inner)
        return whole if whole and inner.startswith("\\boxed{") and inner.endswith("}") else inner
    return boxed(text)


def boxed(text: str) -> str:
    """Return the content of the last balanced ``\\boxed{…}``, "" if there is none."""
    start = text.rfind("\\boxed{")
    while start >= 0:
        depth = 0
        for position in range(start + 6, len(text)):
            depth += (text[position] == "{") - (text[position] == "}")
            if not depth:
                return text[start + 7 : position].strip()
        start = text.rfind("\\boxed{", 0, start)
    return ""
