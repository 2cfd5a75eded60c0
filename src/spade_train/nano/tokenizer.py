"""The nano model's tokenizer: one token for each lexeme, word and printable ASCII character.

Text is cut greedily, longest lexeme first, so a program of 20 lines is about 25 tokens. Any printable ASCII text,
tabs and newlines included, survives encoding and decoding unchanged; other characters become ``<|unknown|>``.
"""

from __future__ import annotations

import re
import string
from typing import Any

from spade_envs.designer.prompts import PromptSet
from spade_train.nano.grammar import LEXEMES, SKILLS, TOPICS, WORDS

SYSTEM, USER, ASSISTANT = "<|system|>", "<|user|>", "<|assistant|>"
END, PAD, UNKNOWN = "<|end|>", "<|pad|>", "<|unknown|>"
SPECIAL = (PAD, UNKNOWN, END, SYSTEM, USER, ASSISTANT)

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{% if message['role'] not in ['system', 'user', 'assistant'] %}"
    "{{ raise_exception('the nano model knows the roles system, user and assistant') }}"
    "{% endif %}"
    "{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
"""Every turn is rendered the same wherever it stands, so a longer conversation never changes earlier ids."""

CONTEXT = 256
"""The longest sequence the model was trained for, in tokens."""


def lexicon(prompts: PromptSet) -> list[str]:
    """All tokens in the order of their ids: special, lexemes, prompt phrases, numbers, words, characters.

    The nano prompt set's fixed phrases are tokens too, so the vocabulary belongs to that set.
    """
    phrases = [
        prompts.agent_system,
        prompts.hint_template.split("{hint}")[0],
        *(str(message["content"]) for message in prompts.designer_messages(None, SKILLS[0])[:1]),
        *PROMPT_PHRASES,
        *(f" {skill}" for skill in SKILLS),
        *(f" {topic}" for topic in TOPICS),
    ]
    numbers = [*(f" {digit}" for digit in range(10)), "10"]
    words = [form for word in WORDS for form in (f" {word}", word.capitalize())]
    characters = [chr(code) for code in range(32, 127)] + [c for c in string.whitespace if c in "\t\n\r"]
    return list(dict.fromkeys([*SPECIAL, *LEXEMES, *filter(None, phrases), *numbers, *words, *characters]))


PROMPT_PHRASES = ("Skill:", "\nTopic:", "\nWords:", "\nLike: ", "\nUnlike: ", " won", " regret")
"""Fixed phrases of ``designer.user.jinja``."""


def build_tokenizer(prompts: PromptSet | None = None) -> Any:
    """Return the tokenizer as a ``transformers.PreTrainedTokenizerFast``."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    tokens = lexicon(prompts or PromptSet.load("nano"))
    vocabulary = {token: index for index, token in enumerate(tokens)}
    longest_first = sorted(tokens[len(SPECIAL) :], key=len, reverse=True)
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    pattern = "|".join(_escape(token) for token in longest_first)
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), behavior="isolated")
    backend.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        eos_token=END,
        pad_token=PAD,
        unk_token=UNKNOWN,
        additional_special_tokens=[SYSTEM, USER, ASSISTANT],
        chat_template=CHAT_TEMPLATE,
        padding_side="left",
        model_max_length=CONTEXT,
        clean_up_tokenization_spaces=False,
    )


def _escape(token: str) -> str:
    """Quote for Oniguruma, which reads ``\\n`` in a pattern but not Python's escapes of blanks."""
    return (
        re.sub(r"([\\^$.|?*+()\[\]{}\-&~#])", r"\\\1", token)
        .replace("\n", "\\n")
        .replace("\t", "\\t")
        .replace("\r", "\\r")
    )
