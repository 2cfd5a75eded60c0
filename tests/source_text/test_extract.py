"""Finding programs in replies and mending them."""

from __future__ import annotations

import ast
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spade_envs.source_text.extract import Extracted, extract_program
from spade_envs.source_text.mend import mend_source

PROGRAM = '''import random


class MazeEnv(TextEnv):
    """A maze.

    ```
    #.#
    ```
    """

    def reset(self, seed=None):
        self.data = {"a": {1, 2}, "b": {}}
        return f"Go {self.turn}: use \\\\boxed{{up}}", {}

    def step(self, action):
        return "no", 0.0, False, True, {}
'''
SMALL = "class AEnv:\n    def step(self, action):\n        return '', 0.0, True, False, {}\n"


def test_bare_source_is_taken_as_it_is() -> None:
    assert extract_program(PROGRAM) == Extracted(PROGRAM)


@pytest.mark.parametrize("fence", ["```", "~~~", "````"])
@pytest.mark.parametrize("tag", ["", "python", "py", "Python"])
def test_a_fenced_program_is_unwrapped_even_if_it_holds_fences(fence: str, tag: str) -> None:
    reply = f"Let me think.\n\n{fence}{tag}\n{PROGRAM}{fence}\n\nThat is all."
    assert extract_program(reply) == Extracted(PROGRAM)


def test_reasoning_and_drafts_in_it_are_ignored() -> None:
    draft = SMALL.replace("AEnv", "DraftEnv")
    reply = f"<think>\nFirst:\n```python\n{draft}```\nbetter now\n</think>\nHere:\n```python\n{SMALL}```"
    assert extract_program(reply) == Extracted(SMALL)
    assert extract_program(f"<think>\n```python\n{draft}```\n") == Extracted("")


def test_the_last_complete_block_with_a_class_wins() -> None:
    first = SMALL.replace("AEnv", "FirstEnv")
    usage = "```python\nenv = AEnv()\nprint(env.step('x'))\n```"
    output = '```json\n{"class AEnv": 1}\n```'
    assert extract_program(f"```python\n{first}```\n```python\n{SMALL}```\n{usage}\n{output}") == Extracted(SMALL)
    # One that was cut off does not replace a whole one.
    assert extract_program(f"```python\n{SMALL}```\nShorter:\n```python\n{first[:30]}") == Extracted(SMALL)


def test_an_environment_class_is_preferred_to_a_helper_after_it() -> None:
    helper = "class Helper:\n    pass\n"
    assert extract_program(f"```\n{SMALL}```\n```\n{helper}```").source == SMALL


def test_a_missing_last_fence_is_mended() -> None:
    assert extract_program(f"Sure:\n```python\n{SMALL}") == Extracted(SMALL, ("missing closing fence",))


def test_a_block_in_a_list_is_dedented() -> None:
    block = "".join(f"   {line}\n" for line in SMALL.splitlines())
    assert extract_program(f"1. Code:\n   ```python\n{block}   ```\n").source == SMALL


def test_sentences_around_bare_source_are_dropped() -> None:
    reply = f"Sure! Here is the environment:\n\nimport random\n{SMALL}\nThis environment trains logic.\nEnjoy!"
    found = extract_program(reply)
    assert found == Extracted(f"import random\n{SMALL}", ("text around the program dropped",))


def test_windows_line_ends_and_a_byte_order_mark() -> None:
    assert extract_program("\ufeff" + SMALL.replace("\n", "\r\n")).source == SMALL


@pytest.mark.parametrize("reply", ["", "I cannot do that.", "```python\n```", "```json\n{}\n```", "<think>hm"])
def test_no_program(reply: str) -> None:
    assert not extract_program(reply).source


def test_broken_source_is_kept_for_the_validator_to_name_the_line() -> None:
    broken = SMALL.replace("return", "retrun x y")
    assert extract_program(f"```python\n{broken}```") == Extracted(broken)


def test_a_program_doubled_throughout_is_halved() -> None:
    doubled = PROGRAM.replace("{", "{{").replace("}", "}}")
    found = extract_program(f"```python\n{doubled}```")
    assert found == Extracted(PROGRAM, ("doubled braces undone throughout",))


def test_doubled_braces_in_code_alone_are_undone_where_they_stand() -> None:
    source = 'class AEnv:\n    é = "ü", {{}}, {{"k": {1}}}\n    t = f"{1 + 1} {{literal}}"\n'
    mended, what = mend_source(source)
    assert mended == 'class AEnv:\n    é = "ü", {}, {"k": {1}}\n    t = f"{1 + 1} {{literal}}"\n'
    assert what == ("doubled braces undone in 2 places",)


def test_boxed_in_an_f_string_is_doubled_where_it_cannot_work() -> None:
    source = (
        "class AEnv:\n    def step(self, answer):\n        x = 1\n"
        '        a = f"{x} \\\\boxed{your answer}"\n        b = f"{x} \\\\boxed{move}"\n'
        '        c = f"{x} \\\\boxed{...}"\n        d = f"\\\\boxed{answer}"\n'
    )
    mended, what = mend_source(source)
    assert mended == source.replace("{your answer}", "{{your answer}}").replace("{move}", "{{move}}").replace(
        "{...}", "{{...}}"
    )
    assert len(what) == 2


def test_a_backspace_before_oxed_was_a_backslash() -> None:
    source = 'class AEnv:\n    p = "Use \\boxed{}", r"\\boxed{(.*)}", "\\\\boxed{}"\n'
    mended, what = mend_source(source)
    assert mended == 'class AEnv:\n    p = "Use \\\\boxed{}", r"\\boxed{(.*)}", "\\\\boxed{}"\n'
    assert what == ("backslash of \\boxed escaped",)


def test_working_programs_are_left_alone() -> None:
    source = (
        "import math\nclass AEnv:\n    s = {1}, {(1, 2)}, [{1: 2}]\n    def f(self, a, *b, **c):\n"
        "        import os.path as p\n        with a as w: pass\n        try: pass\n        except E as e: pass\n"
        "        match a:\n            case {'k': 1, **rest}: pass\n            case [*more] as whole: pass\n"
        "        return f'{a}{b}{c}{p}{w}{e}{rest}{more}{whole}{math}{len}{self.f}{g}'\ng = 1\n"
    )
    ast.parse(source)
    assert mend_source(source) == (source, ())


@given(st.text())
def test_any_text_is_survived(text: str) -> None:
    found = extract_program(text)
    assert found.source == "" or found.source.endswith("\n")


_PIECES = st.sampled_from(
    ["```", "```python", "~~~", "<think>", "</think>", "class AEnv:", "    x = {{}}", "    y = f'{z}'", "    pass",
     'f"\\boxed{a b}"', "}", "{{", "Here you go:", "", "import random", "   ```", "'''", "x = 1"]
)  # fmt: skip


@given(st.lists(_PIECES, max_size=25))
def test_any_arrangement_of_reply_parts_is_survived_and_extraction_is_stable(pieces: list[str]) -> None:
    found = extract_program("\n".join(pieces))
    if found.source and not found.mends and "```" not in found.source and "~~~" not in found.source:
        again = extract_program(f"```python\n{found.source}```")
        assert again.source == found.source


@given(st.lists(_PIECES, max_size=10), st.sampled_from(["", "python"]))
def test_a_last_fenced_program_is_found_after_any_prose(pieces: list[str], tag: str) -> None:
    prose = "\n".join(piece.replace("`", "").replace("~", "").replace("<think>", "") for piece in pieces)
    assert extract_program(f"{prose}\n```{tag}\n{SMALL}```\n").source == SMALL


@pytest.mark.parametrize(
    "bomb",
    ["'(' * 100000", "'-' * 100000 + '1'", "'x' + '.a' * 50000", "'x' + '[0]' * 50000", "'{' * 5000 + '}' * 5000",
     "'1' + '+1' * 50000", "'lambda: ' * 50000 + '1'", "'f\"{' * 200", "'not ' * 50000 + 'x'", "'{{' * 90 + '}}' * 90"],
)  # fmt: skip
def test_deeply_nested_source_does_not_bring_the_process_down(bomb: str) -> None:
    code = f"from spade_envs.designer import extract_program\nextract_program('class AEnv:\\n    y = ' + {bomb})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr[-500:]


@pytest.mark.parametrize("unit", ["```\nx\n```\n", "```js\nx\n```\n", "~~~\n```\n", "````\n```\n"], ids=repr)
def test_a_reply_of_nothing_but_fences_takes_no_quadratic_time(unit: str) -> None:
    started = time.process_time()
    extract_program(unit * 15_000)
    assert time.process_time() - started < 10  # 80 seconds where every block looks at every later fence
