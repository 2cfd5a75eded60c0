"""From messages to token ids, by a tokenizer's chat template."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from spade_envs.models.base import Conversation, Message, ModelError, ToolSchemas
from spade_envs.source_text.thoughts import opened_thought

_TAIL = 16  # tokens at the end of a prompt in which a tag fits
TOO_LONG = "the prompt has"
"""How :func:`too_long` begins, by which such an error is known."""
_TINY_CONTEXT = 1024  # below it no prompt set fits but that of the embedded model


def too_long(tokens: int, context: int) -> str:
    """Say that a prompt of ``tokens`` does not fit into ``context``, and what would."""
    advice = "so small a one holds the embedded model's prompts (--prompts nano) and short episodes only"
    if context >= _TINY_CONTEXT:
        advice = "take a model with a longer one, or shorter prompts (--prompts small)"
    return f"{TOO_LONG} {tokens} tokens, the model's context {context}: {advice}"


def takes_tools(tokenizer: Any) -> bool:
    """Whether the chat template does something with ``tools``."""
    template = getattr(tokenizer, "chat_template", None)
    texts = template.values() if isinstance(template, dict) else [template or ""]
    return any("tools" in text for text in texts)


def render(
    tokenizer: Any,
    name: str,
    conversation: Conversation,
    tools: ToolSchemas = (),
    arguments: Mapping[str, Any] | None = None,
) -> list[int]:
    """Return the ids of ``conversation`` with the header of the assistant's turn.

    A template that refuses a system message gets it as the beginning of the first user message.

    Args:
        tokenizer: with a chat template.
        name: the model's, for the error.
        conversation: the messages.
        tools: function schemas that the template is to show.
        arguments: further arguments of the template, e.g. ``{"enable_thinking": False}``.

    Raises:
        ModelError: if the template refuses the conversation.
    """
    import jinja2

    messages = [dict(message) for message in conversation]
    try:
        return _ids(tokenizer, messages, tools, arguments or {})
    except jinja2.TemplateError as error:
        if len(messages) > 1 and messages[0]["role"] == "system":
            with contextlib.suppress(jinja2.TemplateError):
                return _ids(tokenizer, without_system(conversation), tools, arguments or {})
        raise ModelError(f"model {name}: its chat template refuses the conversation: {error}") from error


def begun(tokenizer: Any, ids: Sequence[int]) -> str:
    """Return what a prompt has begun of the reply: the tag of a thought, or nothing."""
    return opened_thought(tokenizer.decode(list(ids[-_TAIL:]), skip_special_tokens=False))


def _ids(tokenizer: Any, messages: Sequence[Any], tools: ToolSchemas, arguments: Mapping[str, Any]) -> list[int]:
    encoded = tokenizer.apply_chat_template(
        messages,
        tools=list(tools) or None,
        add_generation_prompt=True,
        tokenize=True,
        return_dict=True,
        tokenizer_kwargs={"verbose": False},  # what is too long is told as a completion's error
        **arguments,
    )
    return list(encoded["input_ids"])


def without_system(conversation: Conversation) -> list[Message]:
    """Put the system message before the first user message."""
    system, first, *rest = conversation
    merged: Message = {"role": first["role"], "content": f"{system['content']}\n\n{first['content']}"}
    return [merged, *rest]
