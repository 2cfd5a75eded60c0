"""A Caesar cipher whose key is told."""
import random
import re
import string


class CaesarLessonEnv(TextEnv):
    WORDS = ["harbour", "village", "kitchen", "october", "journey", "blanket", "whisper", "gallery"]

    def __init__(self, max_turns=4, **kwargs):
        super().__init__(max_turns)

    def reset(self, seed=None):
        super().reset(seed)
        self.plain = " ".join(self.rng.sample(self.WORDS, 2))
        self.shift = self.rng.randint(1, 25)
        table = str.maketrans(string.ascii_lowercase, string.ascii_lowercase[self.shift :] + string.ascii_lowercase[: self.shift])
        self.coded = self.plain.translate(table)
        return f"Every letter was moved {self.shift} places forward in the alphabet: '{self.coded}'. What was the text? \\boxed{{}}", {}

    def solution(self):
        return self.plain

    def step(self, action):
        self.turn += 1
        if self.answer(action).lower() == self.plain:
            return "Deciphered.", 1.0, True, False, {}
        right = sum(a == b for a, b in zip(self.answer(action).lower(), self.plain))
        return f"{right} letters are in place.", 0.0, False, self.turn >= self.max_turns, {}
