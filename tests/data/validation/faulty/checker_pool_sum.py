# kind: statement and checker disagree, seen beside another program
# verdict: admitted
# probe: contradiction
# needs: pool
import random
import re


class MaximumEnv:
    def reset(self, seed=None):
        rng = random.Random(seed)
        self.numbers = rng.sample(range(10, 100), 8)
        return f"What is the largest of {self.numbers}? Answer with \\boxed{{number}}.", {}

    def solution(self):
        return str(sorted(self.numbers)[-2])

    def step(self, action):
        match = re.search(r"\\boxed\{\s*(\d{1,6})\s*\}", action)
        ok = match is not None and int(match.group(1)) == sorted(self.numbers)[-2]
        return "done", float(ok), True, False, {}
