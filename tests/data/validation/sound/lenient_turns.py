"""Unusable actions do not use up a turn, valid ones do."""
import random
import re


class LenientEnv:
    def __init__(self, max_turns=6, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        self.number = random.Random(seed).randint(1, 50)
        self.turn = 0
        return "Guess my number from 1 to 50 in 6 tries, like \\boxed{25}.", {}

    def solution(self):
        return str(self.number)

    def step(self, action):
        match = re.search(r"\\boxed\{(\d{1,3})\}", action)
        if match is None:
            return "Please give a number in \\boxed{}.", 0.0, False, False, {}
        self.turn += 1
        guess = int(match.group(1))
        if guess == self.number:
            return "Right.", 1.0, True, False, {}
        return ("Higher." if guess < self.number else "Lower."), 0.0, self.turn >= self.max_turns, False, {}
