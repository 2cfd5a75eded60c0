"""Chat turns as token ids that are only ever concatenated.

What a model said must reach the loss as the ids that were sampled: decoding and encoding again changes nearly
every random sequence. So a conversation grows by appending ids, and the ids of an observation come from the chat
template's own suffix. That is sound only if the template *preserves prefixes*: rendering one more turn must not
change what stands before it (Qwen3's own template drops old ``<think>`` blocks, for example).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from spade_envs.models.base import Conversation, Message
from spade_envs.models.chat_template import without_system
from spade_envs.source_text.thoughts import opened_thought
from spade_train.thinking import think_tags, thinking_arguments

logger = logging.getLogger(__name__)

Speaker = Literal["designer", "hint", "agent"]
"""The roles in which the policy speaks."""

SPEAKERS: tuple[Speaker, ...] = ("designer", "hint", "agent")

_DATE = "26 Jul 2024"  # the one that Llama's templates fall back to
_QUESTION: Message = {"role": "user", "content": "dummy"}
_ANSWERS = ("dummy", "<think>\ndummy\n</think>\n\ndummy")
_REMEDY = (
    "Use a training template: tokenizer.chat_template = trl.chat_template_utils.get_training_chat_template(tokenizer) "
    "if your model family has one, else a template that renders every turn the same wherever it stands."
)


class TemplateError(ValueError):
    """The chat template cannot be used for multi-turn training; the message says what to do."""


class PrefixError(TemplateError):
    """The chat template does not preserve prefixes."""


class EndOfTurnError(TemplateError):
    """The tokenizer's ``eos_token`` is not the token that ends an assistant turn."""


class ChatTokens:
    """Renders conversations and observations with one tokenizer's chat template.

    Args:
        tokenizer: a transformers tokenizer with a chat template and an end-of-turn token as ``eos_token``.
        template: further keyword arguments of ``apply_chat_template``.
        thinking: for each role ``on``, ``off`` or ``default``: whether the policy is told to think before it answers.

    Raises:
        TemplateError: if there is no template, the template does not end an assistant turn with ``eos_token``, it
            does not preserve prefixes, or it has no switch for thinking and one is needed.
    """

    def __init__(
        self,
        tokenizer: Any,
        template: Mapping[str, Any] | None = None,
        thinking: Mapping[str, str] | None = None,
    ) -> None:
        self.tokenizer = tokenizer
        if not getattr(tokenizer, "chat_template", None):
            raise TemplateError("the tokenizer has no chat template: set tokenizer.chat_template")
        if tokenizer.eos_token_id is None:
            raise TemplateError("the tokenizer has no eos_token: set it to the token that ends an assistant turn")
        self.eos: int = int(tokenizer.eos_token_id)
        self.pad: int = int(self.eos if tokenizer.pad_token_id is None else tokenizer.pad_token_id)
        self.tags = think_tags(tokenizer)
        self._template = {role: _fixed_date(tokenizer) | dict(template or {}) for role in SPEAKERS}
        for role, wanted in (thinking or {}).items():
            self._switch(cast(Speaker, role), wanted)
        headers = {role: self._text([_QUESTION], role=role, generation=True) for role in SPEAKERS}
        self._opened = {role: opened_thought(header) for role, header in headers.items()}
        kept = {self.tags.start, self.tags.end} if self.tags else set()
        special = {token for token, added in tokenizer.added_tokens_decoder.items() if added.special}
        self._hidden = (special | set(tokenizer.all_special_ids)) - kept
        self._closed_turn = self._check_prefixes(headers["agent"])

    @property
    def opened(self) -> dict[str, bool]:
        """For each role, whether its prompts end inside a thought that the template has begun."""
        return {role: bool(text) for role, text in self._opened.items()}

    def arguments(self, role: Speaker) -> dict[str, Any]:
        """Return the template's arguments for a role, for whoever renders its prompts by other ways."""
        return dict(self._template[role])

    def prompt(self, messages: Conversation, role: Speaker = "agent") -> list[int]:
        """Return the ids of ``messages`` with the header of the assistant turn that comes next."""
        return self._render(messages, role=role, generation=True)

    def observation(self, text: str, *, closed: bool) -> list[int]:
        """Return the ids between two turns of the agent: a user message and the next assistant header.

        Args:
            text: the user message.
            closed: whether the sampled turn ended with the end-of-turn token. If it was cut by a token limit, the
                missing token comes first.
        """
        turn: list[Message] = [_QUESTION, {"role": "assistant", "content": "dummy"}, {"role": "user", "content": text}]
        ids = self._render(turn, generation=True)
        if ids[: len(self._closed_turn)] != self._closed_turn:
            raise PrefixError(f"the chat template changes earlier turns when a message is added. {_REMEDY}")
        suffix = ids[len(self._closed_turn) :]
        return suffix if closed else [self.eos, *suffix]

    def decode(self, ids: Sequence[int], role: Speaker = "agent") -> str:
        """Return the text of one sampled turn, without special tokens but with the tags around a thought.

        Where the template began the thought, its tag stands before the text, so that readers see a thought that never
        ended for what it is.
        """
        shown = [token for token in ids if token not in self._hidden]
        return self._opened[role] + cast(str, self.tokenizer.decode(shown, skip_special_tokens=False))

    def _switch(self, role: Speaker, wanted: str) -> None:
        def render(arguments: Mapping[str, Any]) -> str:
            system: Message = {"role": "system", "content": "dummy"}  # some templates say it there
            return self._text([system, _QUESTION], role=role, generation=True, **arguments)

        try:
            self._template[role] |= thinking_arguments(wanted, render)
        except ValueError as error:
            raise TemplateError(f"{role}_thinking: {error}") from error

    def _render(self, messages: Conversation, *, role: Speaker = "agent", generation: bool) -> list[int]:
        rendered = self._apply(messages, role=role, generation=generation, tokenize=True, return_dict=False)
        return [int(token) for token in rendered]

    def _text(self, messages: Conversation, *, role: Speaker, generation: bool, **arguments: Any) -> str:
        return cast(str, self._apply(messages, role=role, generation=generation, tokenize=False, **arguments))

    def _apply(self, messages: Conversation, *, role: Speaker, generation: bool, **arguments: Any) -> Any:
        """Apply the template; one that refuses a system message gets it before the first user message."""
        import jinja2

        settings = {**self._template[role], **arguments, "add_generation_prompt": generation}
        try:
            return self.tokenizer.apply_chat_template(list(messages), **settings)
        except jinja2.TemplateError:
            if len(messages) < 2 or messages[0]["role"] != "system":
                raise
            return self.tokenizer.apply_chat_template(without_system(messages), **settings)

    def _check_prefixes(self, header: str) -> list[int]:
        """Return the ids of a closed dummy turn after checking what the template does to earlier turns."""
        closed: list[list[int]] = []
        continued = False
        for answer in _ANSWERS:
            turn: list[Message] = [_QUESTION, {"role": "assistant", "content": answer}]
            alone = self._render(turn, generation=False)
            continued |= self._text(turn, role="agent", generation=False).startswith(header)
            asked = len(self._render([_QUESTION], generation=False))
            if self.eos not in alone[asked:]:
                raise EndOfTurnError(
                    f"the chat template does not end an assistant turn with eos_token "
                    f"{self.tokenizer.eos_token!r}: set tokenizer.eos_token to the end-of-turn token"
                )
            end = len(alone) - alone[::-1].index(self.eos)
            longer = self._render([*turn, _QUESTION], generation=True)
            if longer[:end] != alone[:end]:
                raise PrefixError(f"the chat template changes earlier turns when a message is added. {_REMEDY}")
            closed.append(alone[:end])
        if not continued:
            raise PrefixError(
                f"the chat template's generation prompt is not how it renders an assistant turn. {_REMEDY}"
            )
        return closed[0]


def _fixed_date(tokenizer: Any) -> dict[str, Any]:
    """Return a fixed date for templates that would put today's into the prompt: a run may see midnight."""
    text = tokenizer.chat_template
    names = text.values() if isinstance(text, dict) else [text]
    return {"date_string": _DATE} if any("date_string" in name for name in names) else {}


def prepare_tokenizer(
    tokenizer: Any, template: Mapping[str, Any] | None = None, thinking: Mapping[str, str] | None = None
) -> None:
    """Make a tokenizer fit for multi-turn training, where that is safe; say in the log what was changed.

    A missing padding token becomes ``eos_token``. An ``eos_token`` that does not end a turn gives way to the special
    token that does (Gemma's ``<end_of_turn>``). A template that does not preserve prefixes gives way to TRL's
    training template of its family.

    Args:
        tokenizer: changed in place.
        template: as in :class:`ChatTokens`.
        thinking: likewise.

    Raises:
        TemplateError: if no safe remedy is known.
    """
    for _ in range(3):  # a repair may bring up the next fault
        if tokenizer.pad_token_id is None and tokenizer.eos_token_id is not None:
            tokenizer.pad_token = tokenizer.eos_token
        try:
            ChatTokens(tokenizer, template, thinking)
            return
        except EndOfTurnError as error:
            _use_end_of_turn(tokenizer, error)
        except PrefixError as error:
            _use_training_template(tokenizer, error)
    ChatTokens(tokenizer, template, thinking)


def _use_end_of_turn(tokenizer: Any, error: TemplateError) -> None:
    """Make the first special token after an assistant's answer the tokenizer's ``eos_token``."""
    turn = [_QUESTION, {"role": "assistant", "content": "dummy"}]
    ids = tokenizer.apply_chat_template(turn, tokenize=True, return_dict=False)
    special = {token for token, added in tokenizer.added_tokens_decoder.items() if added.special}
    found = None
    for token in reversed(ids):  # back to the answer's last word
        if token in special:
            found = token
        elif tokenizer.decode([token]).strip():
            break
    if found is None or found == tokenizer.eos_token_id:
        raise error
    logger.info("%r ends a turn here, not %r: it is eos_token now", tokenizer.decode([found]), tokenizer.eos_token)
    tokenizer.eos_token = tokenizer.convert_ids_to_tokens(found)


def _use_training_template(tokenizer: Any, error: TemplateError) -> None:
    """Give the tokenizer TRL's training template of its family."""
    from trl.chat_template_utils import get_training_chat_template

    try:
        template = get_training_chat_template(processing_class=tokenizer)
    except ValueError:
        raise error from None
    if template is None or template == tokenizer.chat_template:
        raise error
    logger.info("the model's own chat template changes earlier turns: TRL's training template is used in its place")
    tokenizer.chat_template = template
