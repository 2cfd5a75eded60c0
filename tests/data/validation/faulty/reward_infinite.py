# kind: reward out of range, infinite
# verdict: refuse
# probe: contract, reward
import random
import re


class SharpRatioEnv:
    """Pays the inverse of the error, which is infinite at zero."""

    def __init__(self, max_turns=1):
        self.max_turns = max_turns

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.xs = [rng.randint(10, 99) for _ in range(5)]
        return f"What is the sum of {self.xs}? \\boxed{{sum}}", {}

    def solution(self):
        return str(sum(self.xs))

    def step(self, action):
        m = re.search(r"\\boxed\{\s*(\d{1,5})\s*\}", action)
        if not m:
            return "No number.", 0.0, True, False, {}
        error = abs(int(m.group(1)) - sum(self.xs))
        reward = float("inf") if error == 0 else 1.0 / error / 100
        return f"Error {error}.", reward, True, False, {}
