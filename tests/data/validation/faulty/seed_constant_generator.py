# kind: seed ignored
# verdict: refuse
# probe: seeds
import random
import re


class TriangleCountEnv:
    """reset() makes its generator from a constant."""

    def __init__(self, max_turns=3, **kwargs):
        self.max_turns = max_turns
        self.reset()

    def reset(self, seed=None):
        rng = random.Random(1234)
        self.turn = 0
        self.sticks = sorted(rng.randint(2, 12) for _ in range(7))
        self.count = sum(
            a + b > c
            for i, a in enumerate(self.sticks)
            for j, b in enumerate(self.sticks[i + 1 :], i + 1)
            for c in self.sticks[j + 1 :]
        )
        return f"Sticks: {self.sticks}. How many choices of three sticks form a triangle? \\boxed{{count}}", {}

    def solution(self):
        return str(self.count)

    def step(self, action):
        self.turn += 1
        m = re.search(r"\\boxed\{\s*(\d{1,4})\s*\}", action)
        ok = m is not None and int(m.group(1)) == self.count
        return ("Yes." if ok else "No."), float(ok), ok, not ok and self.turn >= self.max_turns, {}
