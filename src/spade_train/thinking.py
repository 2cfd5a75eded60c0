"""Models that think before they answer: how a template is told to, and where in a reply the thought ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from spade_train.rows import Row

SWITCHES = ("enable_thinking", "thinking")
"""Arguments by which chat templates are told whether to think (Qwen3, GLM, SmolLM3 …; DeepSeek V3.1, Granite)."""

_TAGS = ("think", "thinking", "reasoning", "thought")

Render = Callable[[Mapping[str, Any]], str]


class ThinkTags(NamedTuple):
    """The tokens around a thought."""

    start: int
    end: int
    text: str  # of the start


class Thought(NamedTuple):
    """The thought of one sampled turn."""

    tokens: int  # the tags included
    finished: bool


def think_tags(tokenizer: Any) -> ThinkTags | None:
    """Return the tokens around a thought, or None if the vocabulary has none."""
    vocabulary = tokenizer.get_vocab()
    for tag in _TAGS:
        start, end = f"<{tag}>", f"</{tag}>"
        if start in vocabulary and end in vocabulary:
            return ThinkTags(int(vocabulary[start]), int(vocabulary[end]), start)
    return None


def thinking_arguments(thinking: str, render: Render) -> dict[str, Any]:
    """Return the template's arguments that switch thinking ``on`` or ``off``; nothing for ``default``.

    Args:
        thinking: ``on``, ``off`` or ``default``.
        render: renders a prompt, up to the assistant's turn, with further arguments of the template.

    Raises:
        ValueError: if the template has no such switch.
    """
    if thinking == "default":
        return {}
    for name in SWITCHES:
        if render({name: True}) != render({name: False}):
            return {name: thinking == "on"}
    raise ValueError(
        f"thinking is to be {thinking}, and the chat template has no switch for it (tried {', '.join(SWITCHES)}): "
        f"leave it at default, or use a model that has one"
    )


def find_thought(ids: Sequence[int], tags: ThinkTags, *, opened: bool) -> Thought | None:
    """Return the thought of a sampled turn, or None if there is none.

    Args:
        ids: what was sampled in one turn.
        tags: the tokens around a thought.
        opened: whether the prompt began the thought already.
    """
    ends = [index for index, token in enumerate(ids) if token == tags.end]
    starts = [index for index, token in enumerate(ids) if token == tags.start]
    if not opened and not starts:
        return Thought(ends[-1] + 1, finished=True) if ends else None
    begun = starts[-1] if starts else -1
    if ends and ends[-1] > begun:
        return Thought(ends[-1] + 1, finished=True)
    return Thought(len(ids), finished=False)


def thinking_metrics(rows: Iterable[Row], tags: ThinkTags | None, opened: Mapping[str, bool]) -> dict[str, float]:
    """Return how much each role thought in the sampled turns of these rows.

    ``thinking/<role>_share`` of turns with a thought; of those ``thinking/<role>_unfinished``, the share whose thought
    had not ended when the turn did, and ``thinking/<role>_tokens``, their mean length.
    """
    if tags is None:
        return {}
    turns: dict[str, list[Thought | None]] = {}
    for row in rows:
        for ids in sampled_turns(row):
            turns.setdefault(row.role, []).append(find_thought(ids, tags, opened=opened.get(row.role, False)))
    metrics: dict[str, float] = {}
    for role, found in turns.items():
        thoughts = [one for one in found if one is not None]
        if not thoughts:
            continue
        metrics[f"thinking/{role}_share"] = len(thoughts) / len(found)
        metrics[f"thinking/{role}_unfinished"] = sum(not one.finished for one in thoughts) / len(thoughts)
        metrics[f"thinking/{role}_tokens"] = sum(one.tokens for one in thoughts) / len(thoughts)
    return metrics


def sampled_turns(row: Row) -> Iterator[list[int]]:
    """Yield the ids of each turn that the policy sampled in this row."""
    turn: list[int] = []
    for token, sampled in zip(row.completion_ids, row.mask):
        if sampled:
            turn.append(token)
        elif turn:
            yield turn
            turn = []
    if turn:
        yield turn
