"""Floats within a tolerance, text reward bool converted."""
import math
import random
import re


class LadderEnv:
    def __init__(self, max_turns=2, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turn = 0
        self.wall, self.foot = rng.randint(20, 90) / 10, rng.randint(10, 40) / 10
        self.length = math.hypot(self.wall, self.foot)
        return f"A ladder reaches {self.wall} m up a wall, its foot stands {self.foot} m off. How long is it, to two decimals? \\boxed{{metres}}", {}

    def hint(self):
        return "The ladder is the hypotenuse: square, add, take the root. Two decimals in \\boxed{}."

    def solution(self):
        return f"{self.length:.2f}"

    def step(self, action):
        self.turn += 1
        m = re.search(r"\\boxed\{\s*(\d{1,4}(?:\.\d{1,8})?)\s*\}", action)
        ok = m is not None and abs(float(m.group(1)) - self.length) <= 0.0101
        return ("It fits." if ok else "It does not fit."), float(ok), ok, not ok and self.turn >= self.max_turns, {}
