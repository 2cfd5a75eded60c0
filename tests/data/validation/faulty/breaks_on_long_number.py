# kind: breaks on huge numbers
# verdict: warn
# probe: malformed
import random
import re


class LighthouseEnv:
    """int() of more than 4300 digits raises ValueError."""

    def __init__(self, max_turns=3, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turn = 0
        self.a, self.b = rng.randint(4, 15), rng.randint(4, 15)
        self.both = self.a * self.b
        while any(self.both % d == 0 and d % self.a == 0 and d % self.b == 0 for d in range(1, self.both)):
            self.both = next(d for d in range(1, self.both) if d % self.a == 0 and d % self.b == 0)
        return f"One light flashes every {self.a} s, another every {self.b} s. They flash together now. After how many seconds again? \\boxed{{s}}", {}

    def solution(self):
        return str(self.both)

    def step(self, action):
        self.turn += 1
        m = re.search(r"\\boxed\{(\d+)\}", action)
        ok = m is not None and int(m.group(1)) == self.both
        return ("Flash." if ok else "Dark."), float(ok), ok, not ok and self.turn >= self.max_turns, {}
