import re

from spade_envs.contract import TextEnv


class DoubleEnv(TextEnv):
    """Double a small number."""

    def reset(self, seed=None):
        super().reset(seed)
        number = self.rng.randint(3, 25)
        self.right = 2 * number
        return f"What is 2 times {number}?", {}

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
