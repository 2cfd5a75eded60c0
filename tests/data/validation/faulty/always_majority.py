# kind: the answer hardly depends on the puzzle
# verdict: refuse
# probe: know_nothing
import random


class FraudCheckEnv(TextEnv):
    """95 % of the cases are 'no'."""

    def reset(self, seed=None):
        super().reset(seed)
        self.amount, self.limit = self.rng.randint(10, 1000), self.rng.randint(940, 990)
        self.label = "yes" if self.amount > self.limit else "no"
        return f"A payment of {self.amount}; the account's limit is {self.limit}. Is it above the limit? \\boxed{{yes}} or \\boxed{{no}}", {}

    def solution(self):
        return self.label

    def step(self, action):
        ok = self.answer(action).lower() == self.label
        return "Filed.", float(ok), True, False, {}
