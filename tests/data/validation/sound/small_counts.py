"""Answers are small numbers that also stand in the text."""
import random
import re
from collections import Counter


class LetterCountEnv(TextEnv):
    WORDS = ["banana", "mississippi", "committee", "bookkeeper", "tennessee", "possession", "assessment", "raspberry", "needlessness"]

    def reset(self, seed=None):
        super().reset(seed)
        self.words = self.rng.sample(self.WORDS, 4)
        self.letter = self.rng.choice("ensa")
        self.count = Counter("".join(self.words))[self.letter]
        return f"How many times does the letter {self.letter} occur in these 4 words: {', '.join(self.words)}? \\boxed{{count}}", {}

    def solution(self):
        return str(self.count)

    def step(self, action):
        ok = self.answer(action) == str(self.count)
        return ("Yes." if ok else "No."), float(ok), True, False, {}
