"""Number guessing with feedback."""
import random


class HigherLowerEnv(TextEnv):
    def reset(self, seed=None):
        super().reset(seed)
        self.number = self.rng.randint(1, 200)
        self.max_turns = 9
        return "Guess my number between 1 and 200; you get 9 tries.", {}

    def solution(self):
        return str(self.number)

    def step(self, action):
        self.turn += 1
        over = self.turn >= self.max_turns
        try:
            guess = int(self.answer(action)[:12])
        except ValueError:
            return "That is not a number.", 0.0, over, False, {}
        if guess == self.number:
            return "Yes!", 1.0, True, False, {}
        return ("Too low." if guess < self.number else "Too high."), 0.0, over, False, {}
