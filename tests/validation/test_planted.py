"""Faults planted into sound programs by a subclass: whatever the program, the probe must see it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spade_envs.sandbox import Sandbox
from spade_envs.validation import validate

SOUND = Path(__file__).parent.parent / "data" / "validation" / "sound"

# name: (probes that may catch it, body of the subclass)
FAULTS = {
    "half_pay": (
        "solution",
        """
    def step(self, action):
        o, r, t, u, i = super().step(action)
        return o, r * 0.5, t, u, i
""",
    ),
    "pays_any_end": (
        "know_nothing",
        """
    def step(self, action):
        o, r, t, u, i = super().step(action)
        return o, 1.0 if t else r, t, u, i
""",
    ),
    "pays_first_turn": (
        "know_nothing",
        """
    def step(self, action):
        o, r, t, u, i = super().step(action)
        return o, 1.0, True, False, i
""",
    ),
    "labelled": (
        "leak",
        """
    def reset(self, seed=None):
        o, i = super().reset(seed)
        s = self.solution()
        s = s if isinstance(s, str) else ' '.join(s)
        return o + '\\n[debug] solution: ' + s, i
""",
    ),
    "hint_is": (
        "hint",
        """
    def hint(self):
        s = self.solution()
        return s if isinstance(s, str) else ' '.join(s)
""",
    ),
    "hint_says": (
        "hint",
        """
    def hint(self):
        s = self.solution()
        return 'Work carefully. The answer is ' + (s if isinstance(s, str) else ' '.join(s))
""",
    ),
    "shared": (
        "determinism,independence",
        """
    games = []
    def reset(self, seed=None):
        o, i = super().reset(seed)
        self.games.append(1)
        return f'Game {len(self.games)}. ' + o, i
""",
    ),
    "no_end": (
        "solution",
        """
    def step(self, action):
        o, r, t, u, i = super().step(action)
        return o, r, False, t or u, i
""",
    ),
    "raises_empty": (
        "malformed,contract",
        """
    def step(self, action):
        first = action.strip()[0]
        return super().step(action)
""",
    ),
    "negative": (
        "reward",
        """
    def step(self, action):
        o, r, t, u, i = super().step(action)
        return o, r if r else -0.1, t, u, i
""",
    ),
    "one_seed": (
        "seeds,know_nothing",
        """
    def reset(self, seed=None):
        return super().reset(7)
""",
    ),
    "substring": (
        "know_nothing,leak",
        """
    def reset(self, seed=None):
        o, i = super().reset(seed)
        s = self.solution()
        self._s = s if isinstance(s, str) else s[-1]
        return o + ' (words: alpha ' + self._s + ' beta)', i
    def step(self, action):
        o, r, t, u, i = super().step(action)
        return (o, 1.0, True, False, i) if self._s in action else (o, r, t, u, i)
""",
    ),
    "solution_prose": (
        "solution",
        """
    def solution(self):
        s = super().solution()
        return 'I would say ' + (s if isinstance(s, str) else ' then '.join(s)) + ', probably.'
""",
    ),
    "blank": (
        "observation",
        """
    def reset(self, seed=None):
        o, i = super().reset(seed)
        return '', i
""",
    ),
    "unformatted": (
        "observation",
        """
    def reset(self, seed=None):
        o, i = super().reset(seed)
        self._amount = len(o)
        return o + ' You have {self._amount} coins.', i
""",
    ),
    "unbraced": (
        "observation",
        """
    def reset(self, seed=None):
        o, i = super().reset(seed)
        word = len(o)
        return o + f' Answer with \\\\boxed{word}.', i
""",
    ),
    "blind": (
        "secrets,observation",
        """
    def reset(self, seed=None):
        o, i = super().reset(seed)
        return 'Play the game.', i
    def step(self, action):
        o, r, t, u, i = super().step(action)
        return 'Go on.', r, t, u, i
""",
    ),
    "bad_tuple": (
        "contract",
        """
    def step(self, action):
        o, r, t, u, i = super().step(action)
        return (o, r, t, u, i) if action != '' and 'boxed' not in action else (o, r, t, i)
""",
    ),
    "bytes": (
        "contract",
        """
    def reset(self, seed=None):
        o, i = super().reset(seed)
        return o.encode(), i
""",
    ),
    "hang": (
        "resources",
        """
    def step(self, action):
        while 'boxed' not in action and 'call' not in action and len(action) > 1:
            pass
        return super().step(action)
""",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("program", ["arithmetic", "state_machine", "minesweeper"])
def test_fault_in_a_sound_program_is_refused(fault: str, program: str, sandbox: Sandbox) -> None:
    probes, body = FAULTS[fault]
    source = (SOUND / f"{program}.py").read_text()
    name = re.findall(r"^class (\w*Env)\b", source, re.MULTILINE)[-1]
    report = validate(f"{source}\n\nclass Faulty{name}({name}):{body}", sandbox=sandbox)
    assert report.name == f"Faulty{name}"
    assert {finding.probe for finding in report.refusals} & set(probes.split(",")), report.findings


LOTTERIES = {
    "once": """
    def reset(self, seed=None):
        super().reset(seed)
        self.right = " ".join(self.rng.sample(["boto3", "curses", "numpy", "pandas", "plotly", "requests"], 5))
        return "What is the name of this library? Give the names as \\\\boxed{first second third fourth fifth}.", {}

    def step(self, action):
        self.turn += 1
        if self.answer(action).strip() == self.right:
            return "That is the library.", 1.0, True, False, {}
        return "That is not the library.", 0.0, False, self.turn >= self.max_turns, {}

    def solution(self):
        return [self.right]
""",
    "by rounds": """
    def reset(self, seed=None):
        super().reset(seed)
        self.rounds = [str(self.rng.randint(100, 999)) for _ in range(3)]
        return "What is the number? Answer with a number.", {}

    def step(self, action):
        self.turn += 1
        if self.answer(action).strip() != self.rounds[0]:
            return "That is not right. What is the number?", 0.0, False, self.turn >= self.max_turns, {}
        del self.rounds[0]
        return "Right. What is the next number?", float(not self.rounds), not self.rounds, False, {}

    def solution(self):
        return list(self.rounds)
""",
}


@pytest.mark.parametrize("name", LOTTERIES)
def test_an_answer_that_nothing_tells_is_a_lottery(name: str, sandbox: Sandbox) -> None:
    """Texts of which the tried words are a part, and rounds that only right answers open, are no information."""
    report = validate(f"class LotteryEnv(TextEnv):{LOTTERIES[name]}", sandbox=sandbox)
    (found,) = [finding for finding in report.findings if finding.probe == "secrets"]
    assert found.severity.value == "refuse"
    assert "want different answers" in found.reason


def test_an_answer_of_several_words_that_is_all_that_differs_is_a_leak(sandbox: Sandbox) -> None:
    body = """
    def reset(self, seed=None):
        super().reset(seed)
        self.right = " ".join(self.rng.sample(["copper", "silver", "amber", "quartz", "marble", "basalt"], 4))
        return f"Decode the text {self.right} and give the original text as \\\\boxed{{}}.", {}

    def step(self, action):
        self.turn += 1
        right = self.answer(action).strip() == self.right
        return "Decoded." if right else "No.", float(right), right, self.turn >= self.max_turns, {}

    def solution(self):
        return [self.right]
"""
    report = validate(f"class DecodeEnv(TextEnv):{body}", sandbox=sandbox)
    (found,) = report.refusals
    assert found.probe == "leak"
    assert "nothing else differs between seeds" in found.reason
    # Where the text says what to do with the words, it is data.
    sound = body.replace("Decode the text {self.right} and", "Say {self.right} from the end to the beginning, and")
    sound = sound.replace("== self.right", '== " ".join(reversed(self.right.split()))')
    sound = sound.replace("return [self.right]", 'return [" ".join(reversed(self.right.split()))]')
    assert not validate(f"class DecodeEnv(TextEnv):{sound}", sandbox=sandbox).refusals


def test_fields_of_other_code_may_be_shown(sandbox: Sandbox) -> None:
    source = (SOUND / "arithmetic.py").read_text()
    name = re.findall(r"^class (\w*Env)\b", source, re.MULTILINE)[-1]
    body = """
    def reset(self, seed=None):
        o, i = super().reset(seed)
        return o + ' A colleague wrote f"{self.wheels} wheels" and {{self.turn}}.', i
"""
    report = validate(f"{source}\n\nclass Coded{name}({name}):{body}", sandbox=sandbox)
    assert not report.refusals, report.findings
