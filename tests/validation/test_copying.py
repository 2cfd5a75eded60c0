"""Puzzles of which nothing is left: the answer is copied from the text, or drawn anew whenever somebody asks."""

import pytest

from spade_envs.sandbox import Sandbox
from spade_envs.validation import ValidationConfig, validate

GAME = '''
import random
class WordsEnv:
    """Words."""
    def reset(self, seed=None):
        self.rng, self.turn = random.Random(seed), 0
        words = self.rng.sample(["ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen", "ibis", "jay"], 4)
        self.words = words
        self.target = {target}
        return f"{text}", {{}}
    def solution(self):
        return {solution}
    def step(self, action):
        self.turn += 1
        won = action.strip() == {wanted}
        return "Right." if won else "Wrong.", float(won), won, self.turn >= 3, {{}}
'''


def _refusals(target, text, solution="self.target", wanted="self.target"):
    source = GAME.format(target=target, text=text, solution=solution, wanted=wanted)
    with Sandbox() as sandbox:
        return {finding.probe for finding in validate(source, sandbox=sandbox).refusals}


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("' '.join(words)", "Make a list of the names {', '.join(words)}."),
        ("','.join(words)", "The names {words} shall be written with commas."),
        ("words[0]", "A variable has the type {words[0]}. Which type has it?"),
        ("words[0] + '/2 ' + words[1] + '.'", "The names are {words[0]}/2, {words[1]}. Write the names."),
        ("words[0] + '_' + words[1]", "The names are {words[0]}_{words[1]}. Write the names of the words."),
        ("self.rng.choice(['Hi, you!', 'What now?', 'It works.'])", "Encode the string '{self.target}'."),
        ("self.rng.choice([*words * 3, 'library'])", "The library has a method {self.target}. Name the method."),
        ("words[0].upper()", "The animal is a(n) {words[0]}. Which is it, in capitals?"),
    ],
    ids=[
        "other separators",
        "a list",
        "one word",
        "marks within",
        "underscore",
        "marks",
        "a word of the text",
        "capitals",
    ],
)
def test_what_is_copied_from_the_text_is_no_puzzle(target, text):
    assert _refusals(target, text) == {"leak"}


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("' '.join(sorted(words))", "Sort the names {', '.join(words)}."),
        ("sorted(words)[1]", "Which of {', '.join(words)} is the second in the dictionary?"),
        ("words[0][::-1]", "Write {words[0]} backwards."),
        ("' '.join(words)", "Put the blanks back: {''.join(words)}."),
        ("'+'.join(words)", "Write a plus between {' '.join(words)}."),
    ],
    ids=["sorted", "one of several", "backwards", "blanks are the task", "marks are the task"],
)
def test_work_on_what_is_shown_is_sound(target, text):
    assert not _refusals(target, text)


def test_an_answer_that_is_drawn_whenever_it_is_asked_for_is_refused():
    draw = "str(self.rng.randint(1, 50))"
    assert "queries" in _refusals("0", "How many of {', '.join(words)} are in the file?", solution=draw, wanted=draw)
    pure = "str(sum(map(len, self.words)))"
    assert not _refusals("0", "How many letters have {', '.join(words)}?", solution=pure, wanted=pure)


def test_a_solution_that_draws_but_stays_right_is_only_warned_of():
    # What it draws makes the next puzzle another one, but not its own answer wrong.
    solution = "[self.target, str(self.rng.random())][:1]"
    source = GAME.format(
        target="' '.join(sorted(words))", text="Sort {', '.join(words)}.", solution=solution, wanted="self.target"
    ).replace('"Wrong."', 'f"Wrong. {self.rng.random()}"')
    with Sandbox() as sandbox:
        report = validate(source, sandbox=sandbox)
    assert report.admitted
    assert "queries" in {finding.probe for finding in report.findings}


def test_a_reset_that_fails_on_seeds_that_only_some_players_see_is_named_as_such():
    # The answer is always the same, so that further seeds are looked at.
    further = ValidationConfig().further_seeds
    target = f"'ant' if seed not in {tuple(further)} else seed.missing"
    source = GAME.format(target=target, text="Of {', '.join(words)}?", solution="self.target", wanted="self.target")
    with Sandbox() as sandbox:
        reasons = [finding.reason for finding in validate(source, sandbox=sandbox).refusals]
    failed = [reason for reason in reasons if "AttributeError" in reason]
    assert failed
    assert all(reason.startswith("reset() failed on seed ") for reason in failed)
