# kind: breaks on zero
# verdict: refuse
# probe: contract, malformed
import random
import re


class LensEnv:
    """Divides by the given number."""

    def __init__(self, max_turns=3, **kwargs):
        self.max_turns = max_turns
        self.reset()

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turn = 0
        self.factor, self.width = rng.randint(3, 12), rng.randint(13, 80)
        self.image = self.factor * self.width
        return f"A lens shows a coin of {self.width} mm as {self.image} mm. By which factor does it enlarge? \\boxed{{factor}}", {}

    def solution(self):
        return str(self.factor)

    def step(self, action):
        self.turn += 1
        m = re.search(r"\\boxed\{\s*(-?\d{1,6})\s*\}", action)
        if m is None:
            return "A number, please.", 0.0, False, self.turn >= self.max_turns, {}
        ok = self.image / int(m.group(1)) == self.width
        return ("Sharp." if ok else "Blurred."), float(ok), ok, not ok and self.turn >= self.max_turns, {}
