"""Letters to be put together: the separated answer is the data."""
import random


class TilesEnv(TextEnv):
    WORDS = ["planet", "marble", "rocket", "silver", "tunnel", "walnut", "zephyr"]

    def reset(self, seed=None):
        super().reset(seed)
        self.word = self.rng.choice(self.WORDS)
        self.extra = self.rng.choice(["two", "three"])
        tiles = " - ".join(self.word.upper())
        return f"Tiles lie in a row: {tiles}. Join them and write the word in lower case, {self.extra} times with a blank between: \\boxed{{}}", {}

    def solution(self):
        return " ".join([self.word] * (2 if self.extra == "two" else 3))

    def step(self, action):
        ok = self.answer(action) == self.solution()
        return ("Yes." if ok else "No."), float(ok), True, False, {}
