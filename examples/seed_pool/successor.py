import re

from spade_envs.contract import TextEnv


class SuccessorEnv(TextEnv):
    """Say the number after a number."""

    def reset(self, seed=None):
        super().reset(seed)
        number = self.rng.randint(10, 98)
        self.right = number + 1
        return f"Which number comes right after {number}?", {}

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
