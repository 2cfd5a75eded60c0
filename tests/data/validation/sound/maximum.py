"""The answer is naturally an element of the data."""
import random
import re


class MaximumEnv:
    def reset(self, seed=None):
        rng = random.Random(seed)
        self.numbers = rng.sample(range(10, 100), 8)
        return f"What is the largest of {self.numbers}? Answer with \\boxed{{number}}.", {}

    def solution(self):
        return str(max(self.numbers))

    def step(self, action):
        match = re.search(r"\\boxed\{\s*(\d{1,6})\s*\}", action)
        ok = match is not None and int(match.group(1)) == max(self.numbers)
        return "done", float(ok), True, False, {}
