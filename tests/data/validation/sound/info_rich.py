"""Harmless diagnostics in info."""
import random
import re


class PigeonEnv:
    def __init__(self, max_turns=5, **kwargs):
        self.max_turns = max_turns
        self.reset()

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turn = 0
        self.low, self.high = 1, 512
        self.secret = rng.randint(1, 512)
        self.limit = 10
        return "A pigeon has a number from 1 to 512. Guess it within 10 tries: \\boxed{number}. It says higher or lower.", {"range": [1, 512], "difficulty": "easy"}

    def solution(self):
        return str(self.secret)

    def step(self, action):
        self.turn += 1
        info = {"turn": self.turn, "left": self.limit - self.turn}
        m = re.search(r"\\boxed\{\s*(\d{1,4})\s*\}", action)
        over = self.turn >= self.limit
        if not m:
            return "Coo?", 0.0, False, over, info
        n = int(m.group(1))
        if n == self.secret:
            return "Coo!", 1.0, True, False, info
        return ("higher" if n < self.secret else "lower"), 0.0, False, over, info
