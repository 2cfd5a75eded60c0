"""The reversed answer is the data."""
import random
import re


class ReverseListEnv:
    def __init__(self, max_turns=2, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turn = 0
        self.items = [rng.randint(10, 99) for _ in range(rng.randint(5, 8))]
        drawer = rng.choice(["kitchen", "office", "cellar"])
        return f"In the {drawer} drawer lie the numbers {self.items}. List them the other way round, with commas: \\boxed{{a,b,...}}", {}

    def solution(self):
        return ",".join(map(str, self.items[::-1]))

    def step(self, action):
        self.turn += 1
        m = re.search(r"\\boxed\{([\d,\s]{1,100})\}", action)
        ok = m is not None and m.group(1).replace(" ", "") == self.solution()
        return ("Yes." if ok else "No."), float(ok), ok, not ok and self.turn >= self.max_turns, {}
