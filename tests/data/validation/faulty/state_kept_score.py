# kind: hidden global state, reset forgets a field
# verdict: refuse
# probe: determinism
import random
import re


class SpellingBeeEnv(TextEnv):
    """self.lives is only set in __init__."""

    WORDS = ["rhythm", "necessary", "bookkeeper", "separate", "queue", "vacuum", "embarrass", "jewellery"]

    def __init__(self, max_turns=6, **kwargs):
        super().__init__(max_turns)
        self.lives = 3

    def reset(self, seed=None):
        super().reset(seed)
        self.word = self.rng.choice(self.WORDS)
        gaps = set(self.rng.sample(range(len(self.word)), 3))
        shown = "".join("_" if i in gaps else c for i, c in enumerate(self.word))
        return f"Lives: {self.lives}. Fill in the word: {shown}. Send all of it as \\boxed{{word}}.", {}

    def solution(self):
        return self.word

    def step(self, action):
        self.turn += 1
        if self.answer(action).lower() == self.word:
            return "Spelt right.", 1.0, True, False, {}
        self.lives -= 1
        return f"Lives: {self.lives}.", 0.0, False, self.lives <= 0 or self.turn >= self.max_turns, {}
