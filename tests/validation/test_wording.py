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
        {"task": "Write the sums total, then the products results.", "answer": UNTOLD},
        {"answer": UNTOLD, "wrong": "Write Sum total: n. Product result: n"},
        {"answer": f"The grand total comes to {SUM}", "won": "str(self.a + self.b) in action"},
        {"answer": f"total amount: {SUM}", "won": "action.strip().endswith(str(self.a + self.b))"},
        {"answer": f"total amount = {SUM}", "won": "action.split()[-1:] == [str(self.a + self.b)]"},
        {"answer": SUM},
    ],
    ids=[
        "told",
        "told in another form",
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


def test_moves_are_not_answers():
    source = GAME.format(task="Go.", answer="x", won="action == 'x'", wrong="No.").replace(
        'return f"x"', 'return ["open gate", f"shout {self.a + self.b}"]'
    )
    with Sandbox() as sandbox:
        assert "wording" not in {finding.probe for finding in validate(source, sandbox=sandbox).findings}
