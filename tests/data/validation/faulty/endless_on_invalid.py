# kind: infinite episode, unusable actions do not count
# verdict: warn
# probe: termination
import random
import re


class ConnectDotsEnv:
    """Invalid moves return before the turn is counted."""

    def __init__(self, max_turns=5, **kwargs):
        self.max_turns = max_turns
        self.reset()

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turn = 0
        self.dots = sorted(rng.sample(range(10, 60), 5))
        self.gap = max(b - a for a, b in zip(self.dots, self.dots[1:]))
        return f"Dots at {self.dots}. How wide is the widest gap between neighbours? \\boxed{{gap}}", {}

    def solution(self):
        return str(self.gap)

    def step(self, action):
        m = re.search(r"\\boxed\{\s*(\d{1,4})\s*\}", action)
        if not m:
            return "Invalid move, try again.", 0.0, False, False, {}
        self.turn += 1
        if int(m.group(1)) == self.gap:
            return "Yes.", 1.0, True, False, {}
        return "No.", 0.0, False, self.turn >= self.max_turns, {}
