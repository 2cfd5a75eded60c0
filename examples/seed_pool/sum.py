import re

from spade_envs.contract import TextEnv


class SumEnv(TextEnv):
    """Add two small numbers."""

    def reset(self, seed=None):
        super().reset(seed)
        a, b = self.rng.randint(2, 12), self.rng.randint(2, 12)
        self.right = a + b
        return f"What is {a} + {b}?", {}

    def step(self, action):
        """The last number of the reply is the answer."""
        self.turn += 1
        numbers = re.findall(r"\d+", action)
        right = bool(numbers) and numbers[-1] == str(self.right)
        return "Right." if right else "Wrong.", float(right), True, False, {}

    def hint(self):
        return f"The answer is {self.right}."

    def solution(self):
        return str(self.right)
