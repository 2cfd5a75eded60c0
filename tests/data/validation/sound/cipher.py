"""Caesar cipher with a shifted example."""
import random


def shift(text, k):
    return "".join(chr((ord(c) - 97 + k) % 26 + 97) if c.isalpha() else c for c in text)


class CaesarEnv(TextEnv):
    WORDS = "river stone cloud tiger piano ocean maple bread chalk flame grape honey".split()

    def reset(self, seed=None):
        super().reset(seed)
        self.plain = " ".join(self.rng.sample(self.WORDS, 3))
        self.k = self.rng.randint(1, 25)
        return f"Decode {shift(self.plain, self.k)!r}; every letter was moved forward by {self.k}.", {}

    def solution(self):
        return self.plain

    def hint(self):
        return f"Move every letter back by {self.k}."

    def step(self, action):
        return "done", float(self.answer(action).strip().lower() == self.plain), True, False, {}
