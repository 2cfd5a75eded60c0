"""Answers without the thoughts before them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spade_envs.source_text.thoughts import opened_thought, without_thoughts


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("plain", "plain"),
        ("<think>a</think>b", "b"),
        ("a thought</think>b", "b"),
        ("Well.\n<thinking>a\n</thinking>\nb", "Well.\n\nb"),
        ("<think>a</think>b<think>c</think>d", "bd"),
        ("<think>never ends", ""),
        ("b\n<reasoning>cut off", "b\n"),
        ("if a <think> b: pass", "if a <think> b: pass"),
    ],
)
def test_thoughts(text: str, answer: str) -> None:
    assert without_thoughts(text) == answer


@given(st.lists(st.sampled_from(["<think>", "</think>", "<thinking>", "</thinking>", "a", "\n", "<"])).map("".join))
def test_no_thought_is_left(text: str) -> None:
    answer = without_thoughts(text)
    assert answer in text or "</" in text
    assert "</think" not in answer


@pytest.mark.parametrize(
    ("prompt", "begun"),
    [("<|im_start|>assistant\n<think>\n", "<think>\n"), ("assistant\n<think>\n\n</think>\n\n", ""), ("assistant\n", ""),
     ("<thought>", "<thought>"), ("say <think> and then", "")],
)  # fmt: skip
def test_thought_that_a_prompt_begins(prompt: str, begun: str) -> None:
    assert opened_thought(prompt) == begun
    assert without_thoughts(opened_thought(prompt) + "never ends") == ("" if begun else "never ends")
