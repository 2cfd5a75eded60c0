"""Dice within an episode come from the seeded generator; a plan still wins always."""
import random


class DiceRaceEnv(TextEnv):
    """Reach exactly the goal by choosing how many dice to add or to leave."""

    def __init__(self, max_turns=30, **kwargs):
        super().__init__(max_turns)

    def reset(self, seed=None):
        super().reset(seed)
        self.sum, self.goal = 0, self.rng.randint(17, 26)
        self.die = self.rng.randint(1, 6)
        return f"Reach exactly {self.goal}. Sum 0, the die shows {self.die}. \\boxed{{add}}, \\boxed{{skip}}, or \\boxed{{half}} to add half of it, rounded up.", {}

    def solution(self):
        left = self.goal - self.sum
        return "add" if self.die <= left else "half" if -(-self.die // 2) <= left else "skip"

    def step(self, action):
        self.turn += 1
        word = self.answer(action).lower()
        if word == "add":
            self.sum += self.die
        elif word == "half":
            self.sum += -(-self.die // 2)
        if self.sum == self.goal:
            return "Exactly!", 1.0, True, False, {}
        if self.sum > self.goal:
            return "Too much.", 0.0, True, False, {}
        self.die = self.rng.randint(1, 6)
        return f"Sum {self.sum} of {self.goal}, the die shows {self.die}.", 0.0, False, self.turn >= self.max_turns, {}
