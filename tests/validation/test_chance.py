"""What stands in a text by chance is no leak; what is paid before the end is said."""

from __future__ import annotations

import random
import re
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spade_envs.sandbox import Sandbox
from spade_envs.validation import Severity, ValidationConfig, validate
from spade_envs.validation.occurrence import _places, bounded
from spade_envs.validation.validate import _with_hidden_seeds

SORT = '''
import random
class SortEnv:
    """Sort two numbers, number {tag}."""
    def reset(self, seed=None):
        rng = random.Random(seed)
        self.numbers = [rng.randint(1, 99) for _ in range(2)]
        shown = {shown}
        return "Sort: " + " ".join(map(str, shown)) + ". Answer with \\\\boxed{{smallest first}}.", {{}}
    def solution(self):
        return "\\\\boxed{{" + " ".join(map(str, sorted(self.numbers))) + "}}"
    def step(self, action):
        return "done", float(action == self.solution()), True, False, {{}}
'''


def _sorted_seeds(source: str) -> int:
    seeds = _with_hidden_seeds(ValidationConfig(), source).seeds
    pairs = [[rng.randint(1, 99) for _ in range(2)] for rng in map(random.Random, seeds)]
    return sum(pair == sorted(pair) for pair in pairs)


def test_numbers_that_happen_to_be_sorted_are_no_leak(sandbox: Sandbox) -> None:
    sources = (SORT.format(tag=tag, shown="self.numbers") for tag in count())
    source = next(source for source in sources if _sorted_seeds(source) >= 7)
    report = validate(source, sandbox=sandbox)
    assert report.admitted
    assert "leak" not in {finding.probe for finding in report.findings}


def test_numbers_that_always_are_sorted_are_a_leak(sandbox: Sandbox) -> None:
    report = validate(SORT.format(tag=0, shown="sorted(self.numbers)"), sandbox=sandbox)
    (finding,) = [finding for finding in report.refusals if finding.probe == "leak"]
    assert "on 32 of 32 seeds" in finding.reason


GOAL = '''
import random
class GoalEnv:
    """Reach a number."""
    def reset(self, seed=None):
        self.goal, self.turn = random.Random(seed).randint(1, 10**6), 0
        return f"Say {{self.goal}} + 1 with \\\\boxed{{{{number}}}}.", {{}}
    def solution(self):
        return f"\\\\boxed{{{{{{self.goal + 1}}}}}}"
    def step(self, action):
        self.turn += 1
        won = action == self.solution()
        return "Right." if won else "Wrong.", float(won), {ended} or self.turn > 4, False, {{}}
'''


@pytest.mark.parametrize(("ended", "warned"), [("False", True), ("won", False)])
def test_a_full_reward_ends_the_episode(ended: str, warned: bool, sandbox: Sandbox) -> None:
    report = validate(GOAL.format(ended=ended), sandbox=sandbox)
    found = [finding for finding in report.findings if "End the episode when the goal is met" in finding.reason]
    assert [(finding.probe, finding.severity) for finding in found] == [("reward", Severity.WARN)] * warned


TEXT = st.text("ab1_-. é²/", max_size=12).map(lambda text: " ".join(text.split()))


@given(TEXT.filter(bool).map(lambda text: text[:3].strip()), TEXT)
def test_places_are_those_of_the_pattern(needle: str, hay: str) -> None:
    assert list(_places(needle, hay)) == [match.span() for match in re.finditer(bounded(needle), hay)]
