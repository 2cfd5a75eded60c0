"""Chance level one half, several turns, all must be right for full pay."""
import random
import re


class OddEvenRowEnv:
    def __init__(self, max_turns=4, **kwargs):
        self.max_turns = max_turns
        self.reset()

    def reset(self, seed=None):
        self.rng = random.Random(seed)
        self.turn, self.hits = 0, 0
        self.items = [(self.rng.randint(100, 999), self.rng.randint(100, 999)) for _ in range(4)]
        return self._ask(), {}

    def _ask(self):
        a, b = self.items[self.turn]
        return f"Question {self.turn + 1} of 4: is {a} times {b} odd or even? \\boxed{{odd}} or \\boxed{{even}}"

    def _right(self):
        a, b = self.items[self.turn]
        return "odd" if a * b % 2 else "even"

    def solution(self):
        return ["odd" if a * b % 2 else "even" for a, b in self.items[self.turn :]]

    def step(self, action):
        m = re.search(r"\\boxed\{(odd|even)\}", action.lower())
        self.hits += m is not None and m.group(1) == self._right()
        self.turn += 1
        if self.turn == 4:
            return f"{self.hits} of 4.", float(self.hits == 4), True, False, {}
        return self._ask(), 0.0, False, False, {}
