"""The forms in which an answer may be handed to a program: as it is, ``\\boxed{…}``, ``<answer>…</answer>``.

A program's ``solution()`` gives the bare answer; whether its ``step`` wants that answer wrapped is a convention
that differs between pools. Whoever plays a solution tries the forms in the order given here.
"""

from __future__ import annotations

from collections.abc import Sequence

_MARKERS = ("\\boxed{", "<answer>", "<tool_call>")


def answer_forms(text: str) -> tuple[str, ...]:
    """Return the texts worth trying for one answer: raw, then boxed, then in answer tags.

    A text that carries one of these markers already has its form and is returned alone.
    """
    if any(marker in text for marker in _MARKERS):
        return (text,)
    return (text, f"\\boxed{{{text}}}", f"<answer>{text}</answer>")


def solution_forms(solution: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return the action sequences worth trying for a solution: every action raw, every one boxed, every one tagged.

    Sequences that would be the same are given once.
    """
    forms = [answer_forms(action) for action in solution]
    sequences = (tuple(form[min(column, len(form) - 1)] for form in forms) for column in range(3))
    return tuple(dict.fromkeys(sequences))
