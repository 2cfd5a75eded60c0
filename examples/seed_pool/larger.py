import re

from spade_envs.contract import TextEnv


class LargerEnv(TextEnv):
    """Say the larger of two numbers."""

    def reset(self, seed=None):
        super().reset(seed)
        shown = self.rng.sample(range(10, 99), 2)
        self.right = max(shown)
        return f"Which number is larger, {shown[0]} or {shown[1]}?", {}

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
