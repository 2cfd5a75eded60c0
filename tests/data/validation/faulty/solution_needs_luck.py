# kind: solution() draws random numbers
# verdict: refuse
# probe: solution, determinism
import random
import re


class TreasureDigEnv:
    """solution() guesses a cell."""

    def __init__(self, max_turns=3, **kwargs):
        self.max_turns = max_turns
        self.reset()

    def reset(self, seed=None):
        self.rng = random.Random(seed)
        self.turn = 0
        self.row, self.col = self.rng.randint(1, 9), self.rng.randint(1, 9)
        self.a, self.b = self.row * 10 + self.col, self.rng.randint(100, 500)
        return f"The chest lies at row and column given by the digits of {self.a + self.b} minus {self.b}. Dig with \\boxed{{row,col}}.", {}

    def solution(self):
        return f"{self.rng.randint(1, 9)},{self.rng.randint(1, 9)}"

    def step(self, action):
        self.turn += 1
        m = re.search(r"\\boxed\{\s*(\d)\s*,\s*(\d)\s*\}", action)
        ok = m is not None and (int(m.group(1)), int(m.group(2))) == (self.row, self.col)
        return ("Gold!" if ok else "Earth."), float(ok), ok, not ok and self.turn >= self.max_turns, {}
