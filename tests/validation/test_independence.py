"""Instances have modules of their own in the sandbox and share one elsewhere: programs that notice are refused."""

import pytest

from spade_envs.sandbox import Sandbox
from spade_envs.validation import validate

GAME = '''
import random
{header}
class DoubleEnv:
    """Doubles."""
    def reset(self, seed=None):
        {keep} = random.Random(seed).randint(10, 9999)
        self.turn = 0
        return f"Double {{{keep}}}. Answer with \\\\boxed{{{{number}}}}.", {{}}
    def solution(self):
        return f"\\\\boxed{{{{{{2 * {keep}}}}}}}"
    def step(self, action):
        self.turn += 1
        {count}
        won = f"\\\\boxed{{{{{{2 * {keep}}}}}}}" in action{unless}
        return "Right." if won else "Wrong.", float(won), won, self.turn >= 3, {{}}
'''


def _findings(header="", keep="self.x", count="pass", unless=""):
    source = GAME.format(header=header, keep=keep, count=count, unless=unless)
    with Sandbox() as sandbox:
        return [(finding.probe, finding.severity.value) for finding in validate(source, sandbox=sandbox).findings]


def test_state_on_the_instance_is_sound():
    assert not [finding for finding in _findings() if finding[1] == "refuse"]


@pytest.mark.parametrize(
    "parts",
    [
        {"header": "STATE = {}", "keep": "STATE['x']"},
        {"header": "class Box:\n    x = 0", "keep": "Box.x"},
        {"header": "BOX = [0]", "count": "BOX[0] += 1", "unless": " or BOX[0] == 4"},
    ],
    ids=["module, set by reset", "class, set by reset", "generous for anybody's fourth step"],
)
def test_state_of_the_module_or_a_class_is_refused(parts):
    probes = {probe for probe, severity in _findings(**parts) if severity == "refuse"}
    assert probes & {"independence", "determinism"}


@pytest.mark.parametrize(
    "count", ["self.lines = iter([1])", "self.lines = (x for x in [1])"], ids=["iterator", "generator"]
)
def test_what_cannot_be_copied_is_warned_of_and_plays_on(count):
    # Iterators of lists copy; generators do not. The steps that were planned for the copy are no death of the program.
    found = _findings(count=count)
    assert not [finding for finding in found if finding[1] == "refuse"]
    assert (("deepcopy", "warn") in found) == ("for" in count)
