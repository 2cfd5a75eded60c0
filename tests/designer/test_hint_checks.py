"""Hints that give away more than strategy."""

from __future__ import annotations

import pytest

from spade_envs.designer import PromptSet
from spade_envs.designer.hint_checks import (
    Seen,
    identifier_complaint,
    length_complaint,
    look,
    value_complaint,
)
from spade_envs.record import EnvironmentRecord
from spade_envs.sandbox import Sandbox

SOURCE = "class LampEnv:\n    def check_answer(self):\n        self._queue, self.target, self.lampCount = [], 1, 2\n"


@pytest.mark.parametrize(
    ("hint", "words"),
    [
        ("", "empty"),
        ("x" * 900, "900 characters"),
        ("One. Two. Three. Four.", "4 sentences"),
        ("Compare pairs, e.g. Ann and Bob. Write 3.5 as a decimal. Answer in \\boxed{}.", ""),
        ("Count first! Then divide?", ""),
    ],
)
def test_length(hint: str, words: str) -> None:
    assert words in length_complaint(hint)
    assert bool(length_complaint(hint)) is bool(words)


@pytest.mark.parametrize(
    ("hint", "names"),
    [
        ("Look at _queue first.", "_queue"),
        ("It ends when check_answer is true.", "check_answer"),
        ("Read self.target.", "target"),
        ("`target` decides.", "target"),
        ("lampCount and LampEnv matter.", "LampEnv, lampCount"),
        ("Hit the target, one lamp at a time.", ""),
        ("Use give_back before lend_out.", ""),  # neither is in the source
        ("Answer in \\boxed{two_words}.", ""),
    ],
)
def test_identifiers(hint: str, names: str) -> None:
    complaint = identifier_complaint(hint, SOURCE, "")
    assert f"({names})" in complaint if names else complaint == ""


def test_names_that_the_player_sees_may_be_used() -> None:
    assert identifier_complaint("Call check_answer() last.", SOURCE, 'tools: {"name": "check_answer"}') == ""


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        ("Give back B1234 first.", "B1234"),
        ("Ask for emma's book.", "Emma"),
        ("Look for 250 of them.", "250"),
        ("Look for 2500 of them.", ""),
        ("Find the open ones.", ""),  # a word of the schemas
        ("Take 7 of them.", ""),  # a single character
    ],
)
def test_values(hint: str, value: str) -> None:
    seen = Seen(schemas='{"enum": ["open", "closed"]}', values=("B1234", "Emma", "250", "open", "7"))
    complaint = value_complaint(hint, seen)
    assert repr(value) in complaint if value else complaint == ""


def test_what_is_seen_of_a_tool_environment(sandbox: Sandbox) -> None:
    source = PromptSet.load("tool_use").example
    seen = look(EnvironmentRecord.create(source, "LibraryLoanEnv"), sandbox, (0, 1))
    assert "take back the book that I have" in seen.shown
    assert "give_back" in seen.schemas
    books = [value for value in seen.values if value.startswith("B")]
    assert len(books) >= 4
    assert value_complaint(f"Start with {books[0]}.", seen)
    strategy = "Look up what each person holds with loans, then call give_back, lend and reserve in this order."
    assert value_complaint(strategy, seen) == identifier_complaint(strategy, source, seen.shown) == ""


def test_a_program_that_fails_shows_nothing(sandbox: Sandbox) -> None:
    assert look(EnvironmentRecord.create("import os\n", "AEnv"), sandbox, (0,)) == Seen()
    raising = (
        "class AEnv(TextEnv):\n    def reset(self, seed=None):\n        1 / 0\n    def step(self, a):\n        pass\n"
    )
    assert look(EnvironmentRecord.create(raising, "AEnv"), sandbox, (0,)) == Seen()
