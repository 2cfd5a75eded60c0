"""Seeded word game; the answer is one of many words."""
import random
import re


class AnagramEnv:
    WORDS = "lantern harvest village compass voyage thunder marble feather orchard candle mirror pepper saddle".split()

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.word = rng.choice(self.WORDS)
        letters = list(self.word)
        while "".join(letters) == self.word:
            rng.shuffle(letters)
        return f"Unscramble the letters {''.join(letters)}. Answer with \\boxed{{word}}.", {}

    def solution(self):
        return self.word

    def hint(self):
        return f"It begins with {self.word[0]!r}; try common endings."

    def step(self, action):
        match = re.search(r"\\boxed\{([a-z]+)\}", action.lower())
        return "done", float(match is not None and match.group(1) == self.word), True, False, {}
