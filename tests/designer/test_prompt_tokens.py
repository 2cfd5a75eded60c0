"""Cutting texts by tokens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spade_envs.designer.tokens import cut_estimated, cut_for, estimated_tokens
from spade_envs.models import ChatModel, load_model


@given(text=st.text(), tokens=st.integers(0, 40))
def test_the_estimate_is_kept_and_nothing_but_an_end_is_lost(text: str, tokens: int) -> None:
    cut = cut_estimated(text, tokens)
    assert text.startswith(cut)
    assert estimated_tokens(cut) <= tokens
    if estimated_tokens(text) <= tokens:
        assert cut == text


def test_words_stay_whole() -> None:
    assert cut_estimated("four four four four", 3) == "four four"
    assert cut_estimated("日本語の文章", 3) == "日本語"
    assert estimated_tokens("abcde日") == 3


def test_a_model_with_a_tokenizer_cuts_by_it() -> None:
    pytest.importorskip("torch")

    class Endpoint:
        name = "endpoint"

    assert cut_for(Endpoint()) is cut_estimated
    nano: ChatModel = load_model("nano", device="cpu")
    try:
        tokenizer = nano.tokenizer  # type: ignore[attr-defined]
        cut = cut_for(nano)
        assert cut is not cut_estimated
        text = "Prime numbers have two divisors. " * 400
        for tokens in (1, 7, 300, 10_000):
            beginning = cut(text, tokens)
            assert text.startswith(beginning)
            assert len(tokenizer(beginning, add_special_tokens=False)["input_ids"]) <= tokens
        assert len(cut(text, 300)) > len(cut(text, 200)) > 100
        assert cut("short", 50) == "short"
    finally:
        nano.close()
