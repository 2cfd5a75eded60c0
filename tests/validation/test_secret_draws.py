"""A random draw that nothing shows and the answer depends on: a lottery, whatever else differs between seeds."""

import pytest

from spade_envs.sandbox import Sandbox
from spade_envs.validation import validate

GAME = '''
class DrawsEnv(TextEnv):
    """Draws."""
    def __init__(self, max_turns={turns}, **kwargs):
        super().__init__(max_turns, **kwargs)
    def reset(self, seed=None):
        super().reset(seed)
        names = self.rng.sample(["ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen", "ibis", "jay"], 6)
        number = self.rng.randint(100, 999)
        {setup}
        return f"{text}", {{}}
    def solution(self):
        return {solution}
    def _go(self, answer):
        right = answer == self.path[self.place]
        self.place += right
        self.said = "You go on." if right else "A wall."
        return self.place == len(self.path)
    def step(self, action):
        self.turn += 1
        answer = self.answer(action)
        won = {won}
        return "Right." if won else {wrong}, float(won), won, self.turn >= self.max_turns, {{}}
'''


def _secrets(setup, text, *, solution="[self.target]", won="answer == self.target", wrong="'Wrong.'", turns=3):
    source = GAME.format(setup=setup, text=text, solution=solution, won=won, wrong=wrong, turns=turns)
    with Sandbox() as sandbox:
        report = validate(source, sandbox=sandbox)
    return {
        (f.probe, f.severity.value) for f in report.findings if f.probe == "secrets" or f.severity.value == "refuse"
    }


@pytest.mark.parametrize(
    ("setup", "text"),
    [
        ("self.target = ' '.join(names)", "Five animals are heard: {', '.join(sorted(names[:5]))}. Name all six."),
        ("self.target = str(number + self.rng.randint(1, 90))", "Something is added to {number}. What is the sum?"),
        ("self.target = self.rng.choice(names[:4]) + str(number)", "{', '.join(names)} race, {number} m. Who wins?"),
        ("import random; self.target = str(random.randint(1, 500))", "After {names[0]}, which number of 500?"),
        (
            "grid = [self.rng.choice('ab') for _ in range(120)]; self.target = str(self.rng.randint(1, 120))",
            "A coin lies in one of 120 cells: {''.join(grid)}. In which one?",
        ),
        ("self.rng.shuffle(names); self.target = ' '.join(names)", "Who stands where of {', '.join(sorted(names))}?"),
    ],
    ids=["one is missing", "a number", "a choice", "another generator", "after much that is shown", "an order"],
)
def test_an_answer_that_hangs_on_a_hidden_draw_is_refused(setup, text):
    assert _secrets(setup, text) == {("secrets", "refuse")}


@pytest.mark.parametrize(
    "game",
    [
        {"setup": "self.target = ' '.join(sorted(names))", "text": "Sort {', '.join(names)}."},
        {"setup": "self.target = str(number * len(names[0]))", "text": "{number} times the letters of {names[0]}?"},
        {
            "setup": "self.number = number; self.target = str(number + self.rng.randint(1, 50))",
            "text": "Name a number above {number}, and not by more than 60.",
            "won": "answer.isdigit() and 0 < int(answer) - self.number <= 60",
        },
        {
            "setup": """import itertools, random
        for attempt in itertools.count():
            few, many = random.Random(seed + attempt).sample(range(10, 99), 2)
            if few < many:
                break
        self.target = str(many - few)""",
            "text": "{many} less {few}?",
        },
    ],
    ids=["sorted", "computed", "one of several right answers", "retries with new generators"],
)
def test_an_answer_that_follows_from_the_text_is_no_secret(game):
    assert _secrets(**game) == set()


@pytest.mark.parametrize(
    "game",
    [
        {
            "setup": "self.target = str(self.rng.randint(1, 100))",
            "text": "After {names[0]}, guess a number up to 100.",
            "wrong": "'Higher.' if answer.isdigit() and int(answer) < int(self.target) else 'Lower.'",
            "turns": 9,
        },
        {
            "setup": "self.path, self.place = [self.rng.choice(['left', 'right']) for _ in range(3)], 0",
            "text": "{names[0]} leads into the maze.",
            "solution": "self.path[self.place:]",
            "won": "self._go(answer)",
            "wrong": "self.said",
            "turns": 9,
        },
        {
            "setup": "self.target = ''.join(self.rng.choice('1234') for _ in range(3))",
            "text": "{names[0]} has set a code of three digits, each from 1 to 4.",
            "wrong": "str(sum(a == b for a, b in zip(answer, self.target))) + ' stand right.'",
            "turns": 9,
        },
        {
            "setup": "self.target = str(self.rng.randint(1, 6))",
            "text": "One of the fuses 1 to 6 is blown. Which one?",
            "turns": 6,
        },
        {
            "setup": "self.place, self.code = self.rng.choice(['drawer', 'vase', 'shelf']), str(number)",
            "text": "A note lies in a drawer, a vase or a shelf. Commands: search THING, type CODE.",
            "solution": "['type ' + self.code]",
            "won": "answer == 'type ' + self.code",
            "wrong": "'The note says ' + self.code if answer == 'search ' + self.place else 'Nothing.'",
            "turns": 6,
        },
    ],
    ids=["higher and lower", "a maze with walls", "a code", "few to try", "things to search"],
)
def test_what_play_reveals_is_no_lottery(game):
    assert ("secrets", "refuse") not in _secrets(**game)


def test_a_tie_that_hardly_occurs_is_warned_of():
    found = _secrets(
        "scores = [(self.rng.randint(1, 1000), n) for n in names]; self.target = max(scores, key=lambda s: s[0])[1]",
        "{', '.join(sorted(f'{name} has {score}' for score, name in scores))}. Who wins?",
    )
    assert found == {("secrets", "warn")}
