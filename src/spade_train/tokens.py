"""Chat turns as token ids that are only ever concatenated.

What a model said must reach the loss as the ids that were sampled: decoding and encoding again changes nearly
every random sequence. So a conversation grows by appending ids, and the ids of an observation come from the chat
template's own suffix. That is sound only if the template *preserves prefixes*: rendering one more turn must not
change what stands before it (Qwen3's own template drops old ``<think>`` blocks, for example).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from spade_envs.models.base import Conversation, Message

_QUESTION: Message = {"role": "user", "content": "dummy"}
_ANSWERS = ("dummy", "<think>\ndummy\n</think>\n\ndummy")
_REMEDY = (
    "Use a training template: tokenizer.chat_template = trl.chat_template_utils.get_training_chat_template(tokenizer) "
    "if your model family has one, else a template that renders every turn the same wherever it stands."
)


class TemplateError(ValueError):
    """The chat template cannot be used for multi-turn training; the message says what to do."""


class ChatTokens:
    """Renders conversations and observations with one tokenizer's chat template.

    Args:
        tokenizer: a transformers tokenizer with a chat template and an end-of-turn token as ``eos_token``.
        template: further keyword arguments of ``apply_chat_template``, e.g. ``{"enable_thinking": False}``.

    Raises:
        TemplateError: if there is no template, the template does not end an assistant turn with ``eos_token``, or
            it does not preserve prefixes.
    """

    def __init__(self, tokenizer: Any, template: Mapping[str, Any] | None = None) -> None:
        self.tokenizer = tokenizer
        self._template = dict(template or {})
        if not getattr(tokenizer, "chat_template", None):
            raise TemplateError("the tokenizer has no chat template: set tokenizer.chat_template")
        if tokenizer.eos_token_id is None:
            raise TemplateError("the tokenizer has no eos_token: set it to the token that ends an assistant turn")
        self.eos: int = int(tokenizer.eos_token_id)
        self.pad: int = int(self.eos if tokenizer.pad_token_id is None else tokenizer.pad_token_id)
        self._closed_turn = self._check_prefixes()

    def prompt(self, messages: Conversation) -> list[int]:
        """Return the ids of ``messages`` with the header of the assistant turn that comes next."""
        return self._render(messages, generation=True)

    def observation(self, text: str, *, closed: bool) -> list[int]:
        """Return the ids between two assistant turns: a user message and the next assistant header.

        Args:
            text: the user message.
            closed: whether the sampled turn ended with the end-of-turn token. If it was cut by a token limit, the
                missing token comes first.
        """
        turn: list[Message] = [_QUESTION, {"role": "assistant", "content": "dummy"}, {"role": "user", "content": text}]
        ids = self._render(turn, generation=True)
        if ids[: len(self._closed_turn)] != self._closed_turn:
            raise TemplateError(f"the chat template changes earlier turns when a message is added. {_REMEDY}")
        suffix = ids[len(self._closed_turn) :]
        return suffix if closed else [self.eos, *suffix]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of sampled ids, without special tokens."""
        return cast(str, self.tokenizer.decode(list(ids), skip_special_tokens=True))

    def _render(self, messages: Conversation, *, generation: bool) -> list[int]:
        ids = self.tokenizer.apply_chat_template(
            list(messages), add_generation_prompt=generation, tokenize=True, return_dict=False, **self._template
        )
        return [int(token) for token in ids]

    def _check_prefixes(self) -> list[int]:
        """Return the ids of a closed dummy turn after checking what the template does to earlier turns."""
        header = self._render([_QUESTION], generation=True)
        closed: list[list[int]] = []
        for answer in _ANSWERS:
            turn: list[Message] = [_QUESTION, {"role": "assistant", "content": answer}]
            alone = self._render(turn, generation=False)
            if alone[: len(header)] != header:
                raise TemplateError(
                    f"the chat template's generation prompt is not how it renders an assistant turn. {_REMEDY}"
                )
            if self.eos not in alone[len(header) :]:
                raise TemplateError(
                    f"the chat template does not end an assistant turn with eos_token "
                    f"{self.tokenizer.eos_token!r}: set tokenizer.eos_token to the end-of-turn token"
                )
            end = len(alone) - alone[::-1].index(self.eos)
            longer = self._render([*turn, _QUESTION], generation=True)
            if longer[:end] != alone[:end]:
                raise TemplateError(f"the chat template changes earlier turns when a message is added. {_REMEDY}")
            closed.append(alone[:end])
        return closed[0]
