"""Options necessarily stand in the observation, one of them is right."""
import random
import re


class UnitChoiceEnv:
    def __init__(self, max_turns=1, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        rng = random.Random(seed)
        speed, minutes = rng.randint(11, 99), rng.randint(11, 59)
        right = speed * minutes
        wrong = rng.sample([right + d for d in (-30, -20, -10, 10, 20, 30)], 3)
        options = [right, *wrong]
        rng.shuffle(options)
        self.letter = "ABCD"[options.index(right)]
        rows = "\n".join(f"{letter}. {value} metres" for letter, value in zip("ABCD", options))
        return f"A beetle runs {speed} metres a minute for {minutes} minutes. How far?\n{rows}\nAnswer with one letter: \\boxed{{A}}, \\boxed{{B}}, \\boxed{{C}} or \\boxed{{D}}.", {}

    def solution(self):
        return self.letter

    def step(self, action):
        m = re.search(r"\\boxed\{\s*([A-D])", action)
        ok = m is not None and m.group(1) == self.letter
        return "Noted.", float(ok), True, False, {}
