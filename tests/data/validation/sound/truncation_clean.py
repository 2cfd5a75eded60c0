"""Truncates on time, terminates on answer; reset is called in __init__ and uses the module's random."""
import random
import re


class StairsEnv:
    def __init__(self, max_turns=6, **kwargs):
        self.max_turns = max_turns
        self.reset()

    def reset(self, seed=None):
        if seed is not None:
            random.seed(seed)
        self.turn = 0
        self.n = random.randint(5, 20)
        self.big = random.choice([2, 3])
        ways = [1] + [0] * self.n
        for i in range(1, self.n + 1):
            ways[i] = sum(ways[i - k] for k in range(1, self.big + 1) if i >= k)
        self.ways = ways[self.n]
        return f"In how many ways can you climb {self.n} stairs if you take 1 to {self.big} at a time? \\boxed{{ways}}", {"stairs": self.n}

    def solution(self):
        return "\\boxed{" + str(self.ways) + "}"

    def step(self, action):
        self.turn += 1
        found = re.findall(r"\\boxed\{\s*(\d{1,12})\s*\}", action)
        if found and int(found[-1]) == self.ways:
            return "Correct!", 1.0, True, False, {}
        return "Incorrect, try again.", 0.0, False, self.turn >= self.max_turns, {"turn": self.turn}
