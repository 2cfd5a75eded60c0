"""Single turn, raw text, answer made of the characters of the prompt."""
import random


class ReverseEnv:
    def reset(self, seed=None):
        rng = random.Random(seed)
        self.text = "".join(rng.choice("abcdefgh") for _ in range(7))
        return f"Write {self.text} backwards, nothing else.", {}

    def solution(self):
        return self.text[::-1]

    def step(self, action):
        return "done", float(action.strip() == self.text[::-1]), True, False, {}
