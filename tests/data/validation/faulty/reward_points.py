# kind: reward out of range, points
# verdict: refuse
# probe: reward
import random
import re


class DartsEnv:
    """Pays 10 points for a win, as games do."""

    def __init__(self, max_turns=3, **kwargs):
        self.max_turns = max_turns
        self.reset()

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turn = 0
        self.throws = [(rng.randint(1, 20), rng.randint(1, 3)) for _ in range(3)]
        self.left = 301 - sum(n * k for n, k in self.throws)
        listing = ", ".join(f"{k} x {n}" for n, k in self.throws)
        return f"From 301 you throw {listing}. How many points are left? \\boxed{{points}}", {}

    def solution(self):
        return str(self.left)

    def step(self, action):
        self.turn += 1
        m = re.search(r"\\boxed\{\s*(\d{1,4})\s*\}", action)
        if m and int(m.group(1)) == self.left:
            return "Game on!", 10, True, False, {}
        return "No.", 0, False, self.turn >= self.max_turns, {}
