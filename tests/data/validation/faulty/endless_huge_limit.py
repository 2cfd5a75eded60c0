# kind: infinite episode, limit out of reach
# verdict: refuse
# probe: termination
import random
import re


class AntColonyEnv(TextEnv):
    def __init__(self, max_turns=100000, **kwargs):
        super().__init__(max_turns)

    def reset(self, seed=None):
        super().reset(seed)
        self.ants, self.days = self.rng.randint(10, 90), self.rng.randint(3, 8)
        self.result = self.ants * 2**self.days
        return f"{self.ants} ants double every day. How many are there after {self.days} days? \\boxed{{n}}", {}

    def solution(self):
        return str(self.result)

    def step(self, action):
        self.turn += 1
        if self.answer(action) == str(self.result):
            return "Counted.", 1.0, True, False, {}
        return "Miscounted.", 0.0, False, self.turn >= self.max_turns, {}
