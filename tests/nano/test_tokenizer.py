"""The nano tokenizer and its chat template."""

from __future__ import annotations

import random
import string
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

transformers = pytest.importorskip("transformers")

from spade_envs.designer.prompts import PromptSet  # noqa: E402
from spade_train.nano.draws import draw_spec  # noqa: E402
from spade_train.nano.grammar import LEXEMES, SKILLS, source, source_pieces  # noqa: E402
from spade_train.nano.players import Game  # noqa: E402
from spade_train.nano.tokenizer import END, UNKNOWN, build_tokenizer, lexicon  # noqa: E402
from spade_train.nano.warmstart import MODEL_FOLDER  # noqa: E402
from spade_train.tokens import ChatTokens  # noqa: E402

ASCII = st.text(alphabet=string.printable.replace("\x0b", "").replace("\x0c", ""), max_size=200)
PIECES = st.lists(st.sampled_from([*LEXEMES, " hen", "Hen", "10", " 1", "x", " ", "\n"]), max_size=12).map("".join)
CHAT = st.lists(st.tuples(st.sampled_from(["user", "assistant", "system"]), ASCII), min_size=1, max_size=5)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return transformers.AutoTokenizer.from_pretrained(MODEL_FOLDER)


@given(text=st.one_of(ASCII, PIECES))
@settings(deadline=None)
def test_printable_ascii_survives_a_round_trip(tokenizer: Any, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.decode(tokenizer.encode(text), skip_special_tokens=True) == text


def test_other_characters_become_the_unknown_token(tokenizer: Any) -> None:
    assert tokenizer.decode(tokenizer.encode("a\u00e9b")) == f"a{UNKNOWN}b"


def test_shipped_files_are_what_the_code_builds(tokenizer: Any) -> None:
    built = build_tokenizer()
    assert tokenizer.get_vocab() == built.get_vocab()
    assert len(tokenizer) == len(lexicon(PromptSet.load("nano")))
    assert tokenizer.chat_template == built.chat_template
    assert (tokenizer.padding_side, tokenizer.eos_token) == ("left", END)
    assert tokenizer.pad_token_id is not None
    assert tokenizer.pad_token_id != tokenizer.eos_token_id


@given(chat=CHAT)
@settings(deadline=None)
def test_a_longer_conversation_never_changes_earlier_ids(tokenizer: Any, chat: list[tuple[str, str]]) -> None:
    messages = [{"role": role, "content": text} for role, text in chat]
    ids: list[int] = []
    for length in range(1, len(messages) + 1):
        longer = tokenizer.apply_chat_template(messages[:length], tokenize=True, return_dict=False)
        assert longer[: len(ids)] == ids
        assert longer[-1] == tokenizer.eos_token_id
        ids = longer
    asked = tokenizer.apply_chat_template(messages, tokenize=True, return_dict=False, add_generation_prompt=True)
    assert asked[:-1] == ids


def test_the_trainer_accepts_the_template(tokenizer: Any) -> None:
    chat = ChatTokens(tokenizer)
    assert tokenizer.decode(chat.observation("Higher", closed=True)) == "<|user|>Higher<|end|><|assistant|>"


def test_programs_and_observations_are_few_tokens(tokenizer: Any) -> None:
    rng = random.Random(0)
    for index in range(100):
        spec = draw_spec(rng, SKILLS[index % len(SKILLS)])
        tokens = [tokenizer.decode([token]) for token in tokenizer.encode(source(spec))]
        assert tokens == source_pieces(spec)
        assert len(tokens) <= 45
        game = Game(spec, index)
        assert len(tokenizer.encode(game.observation)) <= 30
        assert len(tokenizer.encode(" " + game.answer)) <= 8
