"""A new question each turn; solution() is asked again every turn; the last step pays for all."""
import random


class RunningTotalEnv(TextEnv):
    def reset(self, seed=None):
        super().reset(seed)
        self.total, self.right = 0, 0
        return "Keep a running total modulo 100. " + self._ask(), {}

    def _ask(self):
        self.number = self.rng.randint(10, 99)
        self.total = (self.total + self.number) % 100
        return f"Add {self.number}. The total is?"

    def solution(self):
        return str(self.total)

    def step(self, action):
        self.right += self.answer(action) == str(self.total)
        self.turn += 1
        if self.turn == 4:
            return "Finished.", self.right / 4, True, False, {}
        return self._ask(), 0.0, False, False, {}
