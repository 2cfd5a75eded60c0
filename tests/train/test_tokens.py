"""Ids are concatenated, never encoded again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import TEMPLATES, tiny_tokenizer

from spade_envs.models.base import Message
from spade_train.tokens import ChatTokens, TemplateError


def _conversation(answer: str, observation: str) -> list[Message]:
    return [
        {"role": "system", "content": "Play."},
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": answer},
        {"role": "user", "content": observation},
    ]


@pytest.mark.parametrize("answer", ["go left", "<think>\nwhy\n</think>\n\ngo left"])
def test_appended_turn_is_what_the_template_renders(tokenizer: Any, answer: str) -> None:
    tokens = ChatTokens(tokenizer)
    messages = _conversation(answer, "You hit a wall.")
    said = tokenizer.encode(answer, add_special_tokens=False)
    grown = [*tokens.prompt(messages[:2]), *said, tokens.eos, *tokens.observation("You hit a wall.", closed=True)]
    whole = tokens.prompt(messages)
    assert tokenizer.decode(grown).endswith(tokenizer.decode(tokens.observation("You hit a wall.", closed=True)))
    assert grown[-8:] == whole[-8:]
    if "<think>" in answer:
        assert grown == whole


def test_cut_turn_gets_its_end_of_turn_token(tokenizer: Any) -> None:
    tokens = ChatTokens(tokenizer)
    assert tokens.observation("x", closed=False) == [tokens.eos, *tokens.observation("x", closed=True)]


@settings(max_examples=30, deadline=None)
@given(text=st.text(max_size=60))
def test_observation_ends_with_the_assistant_header(tokenizer: Any, text: str) -> None:
    tokens = ChatTokens(tokenizer)
    header = tokens.prompt([{"role": "user", "content": "dummy"}])
    ids = tokens.observation(text, closed=True)
    assert ids[-3:] == header[-3:]


def test_template_that_rewrites_the_past_is_refused_with_the_remedy() -> None:
    dropping = tiny_tokenizer("qwen3.jinja")
    with pytest.raises(TemplateError, match="get_training_chat_template"):
        ChatTokens(dropping)


def test_wrong_end_of_turn_token_is_refused(tokenizer: Any) -> None:
    other = tiny_tokenizer()
    other.eos_token = "<|endoftext|>"
    with pytest.raises(TemplateError, match="end-of-turn"):
        ChatTokens(other)


def test_missing_template_is_refused() -> None:
    other = tiny_tokenizer()
    other.chat_template = None
    with pytest.raises(TemplateError, match="no chat template"):
        ChatTokens(other)
    assert (TEMPLATES / "qwen3.jinja").is_file()
