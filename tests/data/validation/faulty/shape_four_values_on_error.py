# kind: wrong return shape, on unusable actions
# verdict: refuse
# probe: contract, malformed
import random
import re


class TempConvertEnv:
    """The early return has four values."""

    def __init__(self, max_turns=3, **kwargs):
        self.max_turns = max_turns
        self.reset()

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turn = 0
        self.c = rng.randint(-8, 40) * 5
        self.f = self.c * 9 // 5 + 32
        return f"Convert {self.c} degrees Celsius to Fahrenheit: \\boxed{{degrees}}", {}

    def solution(self):
        return str(self.f)

    def step(self, action):
        self.turn += 1
        m = re.search(r"\\boxed\{\s*(-?\d{1,4})\s*\}", action)
        if not m:
            return "Use the box.", 0.0, self.turn >= self.max_turns, {}
        ok = int(m.group(1)) == self.f
        return ("Yes." if ok else "No."), float(ok), ok, not ok and self.turn >= self.max_turns, {}
