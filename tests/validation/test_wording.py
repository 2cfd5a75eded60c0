"""Answers must be worded as the program says; where it does not say how, nobody can win but by reading it."""

import pytest

from spade_envs.sandbox import Sandbox
from spade_envs.validation import validate

GAME = '''
import random
class SumEnv:
    """Adds."""
    def reset(self, seed=None):
        rng = random.Random(seed)
        self.a, self.b, self.turn = rng.randint(10, 999), rng.randint(10, 999), 0
        return f"What is {{self.a}} + {{self.b}}, and what {{self.a}} * {{self.b}}? {task}", {{}}
    def solution(self):
        return f"{answer}"
    def step(self, action):
        self.turn += 1
        won = {won}
        return "Right." if won else {wrong!r}, float(won), won, self.turn >= 3, {{}}
'''
SUM, PRODUCT = "{self.a + self.b}", "{self.a * self.b}"
EXACT = "action.strip() == self.solution()"


def _findings(task="", answer="", won=EXACT, wrong="Wrong."):
    with Sandbox() as sandbox:
        report = validate(GAME.format(task=task, answer=answer, won=won, wrong=wrong), sandbox=sandbox)
    return {
        (f.probe, f.severity.value) for f in report.findings if f.probe == "wording" or f.severity.value == "refuse"
    }


UNTOLD = f"Sum total: {SUM}. Product result: {PRODUCT}"


@pytest.mark.parametrize(
    "answer", [UNTOLD, UNTOLD.lower(), f"calc(plus={SUM}, times={PRODUCT})", f"ergibt: 和值 {SUM}"]
)
def test_words_that_nothing_tells_are_refused(answer):
    words = "Give both." if "times" in answer or "Product" in answer.title() else "Give the sum."
    expected = {("wording", "refuse")} if answer != f"ergibt: 和值 {SUM}" else {("wording", "warn")}
    assert _findings(task=words, answer=answer) == expected


@pytest.mark.parametrize(
    "parts",
    [
        {"task": "Answer as: Sum total: <number>. Product result: <number>", "answer": UNTOLD},
        {"answer": UNTOLD, "wrong": "Write Sum total: n. Product result: n"},
        {"answer": f"The grand total comes to {SUM}", "won": "str(self.a + self.b) in action"},
        {"answer": f"total amount: {SUM}", "won": "action.strip().endswith(str(self.a + self.b))"},
        {"answer": f"total amount = {SUM}", "won": "action.split()[-1:] == [str(self.a + self.b)]"},
        {"answer": SUM},
    ],
    ids=[
        "told",
        "told after a wrong try",
        "number anywhere",
        "number last",
        "last word",
        "bare",
    ],
)
def test_what_is_told_or_not_needed_is_sound(parts):
    assert _findings(**parts) == set()


def test_one_word_may_be_common_knowledge():
    assert _findings(answer=f"{SUM} units", task="Give the sum.") == {("wording", "warn")}


@pytest.mark.parametrize(
    ("task", "answer"),
    [
        ("Give the sum and the product, as \\\\boxed{{sum product}}.", f"Sum: {SUM}, Product: {PRODUCT}"),
        ("Write the sums total, then the products results.", UNTOLD),
        ("Give the sum and the product.", f"sum = {SUM}; product = {PRODUCT}"),
        ("Say what the sum and the product of the two are.", f"The sum of the two is {SUM} and the product {PRODUCT}"),
    ],
    ids=["labels", "other labels", "equations", "a sentence of words that are told"],
)
def test_a_form_that_nothing_tells_is_refused(task, answer):
    assert _findings(task=task, answer=answer) == {("wording", "refuse")}


@pytest.mark.parametrize(
    "parts",
    [
        {"task": "As 'sum: number, product: number'.", "answer": f"Sum: {SUM}, Product: {PRODUCT}"},
        {"task": "The sum of the two is what, and the product?", "answer": f"The sum of the two is {SUM}"},
        {
            "task": "Sum and product?",
            "answer": f"Sum: {SUM}, Product: {PRODUCT}",
            "won": "[str(self.a + self.b), str(self.a * self.b)] == action.replace(',', ' ').split()[-2:] or "
            "str(self.a + self.b) in action and str(self.a * self.b) in action",
        },
        {"task": "Write each as name=value: the total, the product.", "answer": f"total={SUM} product={PRODUCT}"},
        {"task": "Begin with the primes below ten, then the sum.", "answer": f"2 3 5 7 {SUM}"},
        {"task": "Sum and product, as an SQL query of constants.", "answer": f"SELECT {SUM} AS sum FROM dual"},
    ],
    ids=["labels told", "phrase told", "values win alone", "marks told", "numbers that always come", "a language"],
)
def test_a_form_that_is_told_or_not_needed_is_sound(parts):
    assert _findings(**parts) <= ({("wording", "warn")} if "SQL" in parts["task"] else set())


LOTTERY = '''
import random
class SetupEnv:
    """Guess the setup."""
    def reset(self, seed=None):
        rng = random.Random(seed)
        self.target, self.turn = {answer}, 0
        return "{text}", {{}}
    def solution(self):
        return self.target
    def step(self, action):
        self.turn += 1
        won = action.strip() == self.target
        return "Right." if won else "That is not the answer.", float(won), won, self.turn >= 4, {{}}
'''


def test_few_hidden_answers_can_be_tried_only_if_one_can_think_of_them():
    sentences = "f'Set it up with {rng.choice([True, False])} pip and {rng.choice([True, False])} wheels.'"
    for answer, text, severity in (
        (sentences, "Set it up with pip and wheels.", "refuse"),
        ("rng.choice(['north', 'south'])", "The exit is north or south.", "warn"),
        ("rng.choice(['go to the old mill', 'go to the inn'])", "Either go to the old mill or go to the inn.", "warn"),
    ):
        with Sandbox() as sandbox:
            report = validate(LOTTERY.format(answer=answer, text=text), sandbox=sandbox)
        assert ("secrets", severity) in {(f.probe, f.severity.value) for f in report.findings}, answer


def test_moves_are_not_answers():
    source = GAME.format(task="Go.", answer="x", won="action == 'x'", wrong="No.").replace(
        'return f"x"', 'return ["open gate", f"shout {self.a + self.b}"]'
    )
    with Sandbox() as sandbox:
        assert "wording" not in {finding.probe for finding in validate(source, sandbox=sandbox).findings}
