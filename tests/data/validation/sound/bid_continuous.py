"""Graded reward between 0 and 1 by closeness."""
import random
import re


class BudgetSplitEnv:
    """Split a sum in a ratio; pay falls with the error, to nothing at a tenth."""

    def __init__(self, max_turns=1, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.total = rng.randint(50, 900) * 12
        self.a, self.b = rng.randint(1, 5), rng.randint(1, 5)
        self.share = self.total * self.a // (self.a + self.b)
        return f"Split {self.total} in the ratio {self.a}:{self.b}. What is the first share, rounded down? \\boxed{{amount}}", {}

    def solution(self):
        return str(self.share)

    def step(self, action):
        m = re.search(r"\\boxed\{\s*(\d{1,7})\s*\}", action)
        if m is None:
            return "No amount.", 0.0, True, False, {}
        off = abs(int(m.group(1)) - self.share) / self.share
        return f"Off by {off:.1%}.", max(0.0, 1.0 - 10 * off), True, False, {}
