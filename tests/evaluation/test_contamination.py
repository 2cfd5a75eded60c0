"""Benchmark questions in designs and documents are found, others are not."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spade_envs.contamination import CleanCorpus, ContaminationGuard, read_questions
from spade_envs.corpus import Document
from spade_envs.designer.designer import Designer
from spade_envs.designer.prompts import PromptSet
from spade_envs.sandbox import Sandbox
from spade_train.evaluation.contamination import make_guard
from spade_train.evaluation.protocol import EvaluationError

TREE = (
    "Alice and Bob climb a tree with 2025 branches; every minute each of them chooses a branch at random, and they "
    "stop as soon as both sit on the same branch. Find the expected number of minutes before they stop."
)
TILES = "How many ways are there to cover a floor of 3 by 20 metres with tiles of one by two metres without any gap?"
PROGRAM = '''
class TreeEnv:
    """{text}"""

    def reset(self, seed=None):
        return "How many minutes?", {{}}

    def step(self, action):
        return "", 1.0 if action == "2025" else 0.0, True, False, {{}}
'''


@pytest.fixture(scope="module")
def guard() -> ContaminationGuard:
    return ContaminationGuard({"aime/1": TREE, "aime/2": TILES})


def test_a_question_inside_a_program_or_a_document_is_found(guard: ContaminationGuard) -> None:
    hit = guard.check(PROGRAM.format(text=TREE.upper()))
    assert hit is not None
    assert (hit.question, hit.kind, hit.score) == ("aime/1", "n-gram", 13)
    assert guard.why("Some text. " * 300 + TILES + " more text" * 300).startswith("holds the benchmark question aime/2")


def test_a_paraphrase_is_found(guard: ContaminationGuard) -> None:
    told = (
        "Bob and Alice climb the tree: it has 2025 branches. Each minute, each of the two chooses at random some "
        "branch; as soon as both of them sit on one branch they stop. Expected number of minutes before they stop: "
        "find it."
    )
    hit = guard.check(told)
    assert hit is not None
    assert (hit.question, hit.kind) == ("aime/1", "paraphrase")


@pytest.mark.parametrize(
    "text",
    ["", "A tree with many branches.", "How many ways are there to cover a floor?", "def f():\n    return 2025\n" * 50,
     "Sorting algorithms compare pairs of items and swap them until the list is in order. " * 20],
)  # fmt: skip
def test_other_texts_are_not(guard: ContaminationGuard, text: str) -> None:
    assert guard.check(text) is None


@settings(max_examples=25, deadline=None)
@given(st.text(), st.text(), st.booleans())
def test_a_question_is_found_whatever_stands_around_it(guard: ContaminationGuard, a: str, b: str, upper: bool) -> None:
    text = f"{a}\n{TREE.upper() if upper else TREE}\n{b}"
    assert guard.check(text) is not None


def test_instructions_that_questions_share_are_no_question() -> None:
    shared = "Please reason step by step and put your final answer within a box at the very end of it."
    guard = ContaminationGuard({f"q{n}": f"Problem {n}: {'x' * n}? {shared}" for n in range(1, 30)})
    assert guard.check(f"class E: '{shared}'") is None


class _Numbered:
    name, fingerprint = "numbered", "1"

    def sample(self, seed: int, index: int) -> Document:
        number = random.Random(seed * 1000 + index).randrange(50)
        return Document(f"d{number}", TILES if number % 2 else f"Document number {number} is about something else.")


def test_documents_with_questions_are_passed_over_the_same_way_each_time(guard: ContaminationGuard) -> None:
    first, second = CleanCorpus(_Numbered(), guard), CleanCorpus(_Numbered(), guard)
    drawn = [first.sample(3, index).id for index in range(20)]
    assert drawn[::-1] == [second.sample(3, index).id for index in reversed(range(20))]
    assert all(int(name[1:]) % 2 == 0 for name in drawn)
    assert first.hits
    assert first.fingerprint != _Numbered.fingerprint


def test_a_design_with_a_question_is_refused(guard: ContaminationGuard, sandbox: Sandbox) -> None:
    prompts = PromptSet.load("games")
    designer = Designer(prompts, None, sandbox, refuse=guard.why)
    prompt = designer.prompt(None, prompts.skills[0], random.Random(1))
    attempt = designer.admit(f"```python\n{PROGRAM.format(text=TREE)}\n```", prompt)
    assert (attempt.status, attempt.cause) == ("refused", "contaminated")
    assert "aime/1" in attempt.reason


def test_a_setting_names_suites_and_files(tmp_path: Path) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text(
        "".join(json.dumps({"id": f"mine/{n}", "text": text}) + "\n" for n, text in enumerate([TREE, TILES]))
    )
    assert read_questions([path]) == {"mine/0": TREE, "mine/1": TILES}
    made = make_guard(str(path))
    assert made is not None
    assert made.check(TREE)
    assert make_guard("off", ["aime-2025"]) is None
    assert make_guard("auto") is None
    with pytest.raises(ValueError, match="does not exist"):
        make_guard("nowhere.jsonl")
    with pytest.raises(EvaluationError, match="no suite"):
        make_guard("aime-1066")
