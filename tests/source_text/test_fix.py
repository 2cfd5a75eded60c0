"""Mending files: what is mechanical, and nothing else."""

from __future__ import annotations

import ast

import pytest

from spade_envs.source_text import fix_source

PROGRAM = """import random


class SumEnv:
    def reset(self, seed=None):
        self.a = random.Random(seed).randint(1, 9)
        return f"Say {self.a} in \\\\boxed{{}}", {}

    def step(self, action):
        return "", float(str(self.a) in action), True, False, {}
"""


def test_a_sound_program_is_left_as_it_is() -> None:
    fixed = fix_source(PROGRAM)
    assert fixed.source == PROGRAM
    assert fixed.mends == ()


def test_a_fence_and_prose_are_removed() -> None:
    fixed = fix_source(f"Here is the environment:\n\n```python\n{PROGRAM}```\nGood luck!")
    assert fixed.source == PROGRAM
    assert fixed.mends == ("Markdown fence removed",)


def test_a_fence_within_a_docstring_is_no_fence_around_a_program() -> None:
    program = f'"""Usage:\n```python\nclass OtherEnv:\n    pass\n```\n"""\n{PROGRAM}'
    assert fix_source(program).source == program


def test_missing_imports_stand_after_the_docstring_and_future_imports() -> None:
    body = PROGRAM.replace("import random\n", "")
    fixed = fix_source(f'"""A game."""\nfrom __future__ import annotations\n{body}    seen = Counter("ab")\n')
    assert fixed.mends == ("imports added: random, Counter",)
    assert fixed.source.startswith(
        '"""A game."""\nfrom __future__ import annotations\nimport random\nfrom collections import Counter\n'
    )
    assert fix_source(fixed.source).mends == ()


def test_names_of_our_own_bases_are_not_imported() -> None:
    assert fix_source("class AEnv(TextEnv):\n    pass\n").mends == ()


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("\\\\boxed{{}}", "\\\\boxed{answer}", "braces"),
        ("\\\\boxed{{}}", "\\boxed{{}}", "backslash"),
    ],
)
def test_braces_and_escapes(old: str, new: str, word: str) -> None:
    fixed = fix_source(PROGRAM.replace(old, new))
    assert any(word in mend for mend in fixed.mends)
    ast.parse(fixed.source)


@pytest.mark.parametrize("text", ["", "no program here", "class (:", "```python\nx = 1\n```", "x" * 500_000])
def test_what_cannot_be_mended_comes_back(text: str) -> None:
    fixed = fix_source(text)
    assert fixed.source == text or fixed.mends


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        ("""f'{"name": "look"}'""", """f'{{"name": "look"}}'"""),
        ("""f'<call>{"name": "look", "to": {x}}</call>'""", """f'<call>{{"name": "look", "to": {x}}}</call>'"""),
        ("""f'{x}: {"a": {"b": 1}, "c": {x:>3}}'""", """f'{x}: {{"a": {{"b": 1}}, "c": {x:>3}}}'"""),
        ("""f'{{"a": {x}}} {"b": 2}'""", """f'{{"a": {x}}} {{"b": 2}}'"""),
    ],
)
def test_objects_in_f_strings_are_literal(text: str, mended: str) -> None:
    fixed = fix_source(f"x = 1\n\n\nclass AEnv:\n    text = {text}\n")
    assert fixed.source == f"x = 1\n\n\nclass AEnv:\n    text = {mended}\n"
    assert fixed.mends == ("single braces of JSON objects doubled",)
    x = 1  # noqa: F841  read by the text
    assert '"' in eval(mended)


@pytest.mark.parametrize("text", ["""f'{"a":>3}'""", """f'{"a"}'""", """f'{{"a": 1}}'""", """'{"a": 1}'"""])
def test_fields_that_work_are_left(text: str) -> None:
    assert fix_source(f"class AEnv:\n    text = {text}\n").mends == ()
