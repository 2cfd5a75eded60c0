"""Answer is a permutation of the data."""
import random
import re


class SortEnv:
    def reset(self, seed=None):
        rng = random.Random(seed)
        self.items = [rng.randint(0, 99) for _ in range(5)]
        return f"Sort ascending: {' '.join(map(str, self.items))}. Answer with \\boxed{{numbers with spaces}}.", {}

    def solution(self):
        return " ".join(map(str, sorted(self.items)))

    def step(self, action):
        match = re.search(r"\\boxed\{([\d ]{1,80})\}", action)
        ok = match is not None and [int(x) for x in match.group(1).split()] == sorted(self.items)
        return "done", float(ok), True, False, {}
