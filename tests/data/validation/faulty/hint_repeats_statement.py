# kind: hint, only repeats the statement
# verdict: warn
# probe: hint
import random


class DominoTilingEnv(TextEnv):
    """Count tilings of a 2 x n board."""

    def __init__(self, max_turns=2, **kwargs):
        super().__init__(max_turns)

    def reset(self, seed=None):
        super().reset(seed)
        self.n = self.rng.randint(6, 25)
        a, b = 1, 1
        for _ in range(self.n - 1):
            a, b = b, a + b
        self.count = b
        self.text = f"In how many ways can a board of 2 by {self.n} squares be covered with dominoes? Answer with \\boxed{{count}}."
        return self.text, {}

    def hint(self):
        return self.text

    def solution(self):
        return str(self.count)

    def step(self, action):
        self.turn += 1
        ok = self.answer(action) == str(self.count)
        return ("Yes." if ok else "No."), float(ok), ok, not ok and self.turn >= self.max_turns, {}
