"""The code is hidden and revealed by play."""
import random
import re


class BullsEnv:
    def __init__(self, max_turns=12, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        self.code = "".join(random.Random(seed).sample("123456789", 4))
        self.turn = 0
        return "Find the code of four different digits 1-9. Guess with \\boxed{1234}.", {}

    def solution(self):
        return self.code

    def step(self, action):
        self.turn += 1
        late = self.turn >= self.max_turns
        match = re.search(r"\\boxed\{(\d{4})\}", action)
        if match is None:
            return "Give four digits in \\boxed{}.", 0.0, False, late, {}
        guess = match.group(1)
        if guess == self.code:
            return "Solved.", 1.0, True, False, {}
        bulls = sum(a == b for a, b in zip(guess, self.code))
        cows = len(set(guess) & set(self.code)) - bulls
        return f"{guess}: {bulls} bulls, {cows} cows.", 0.0, False, late, {}
