import random
import re


class GuessEnv:
    """Guess a number between 1 and 100; the answers are higher and lower."""

    def __init__(self, max_turns=20, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        self.secret = random.randint(1, 100)
        self.turn = 0
        return "Guess a number between 1 and 100. Answer like \\boxed{50}.", {}

    def step(self, action):
        self.turn += 1
        out_of_turns = self.turn >= self.max_turns
        match = re.search(r"\\boxed\{(\d+)\}", action)
        if match is None:
            return "Answer like \\boxed{50}.", 0.0, False, out_of_turns, {}
        guess = int(match.group(1))
        if guess == self.secret:
            return "Right!", 1.0, True, False, {}
        return ("Higher." if guess < self.secret else "Lower."), 0.0, False, out_of_turns, {}
