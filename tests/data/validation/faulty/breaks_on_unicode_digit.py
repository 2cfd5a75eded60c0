# kind: breaks on unicode digits
# verdict: warn
# probe: malformed
import random
import re


class ShuttleSeatEnv:
    """'²'.isdigit() is true, int('²') raises."""

    def __init__(self, max_turns=3, **kwargs):
        self.max_turns = max_turns
        self.reset()

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turn = 0
        self.rows, self.per_row, self.taken = rng.randint(12, 30), rng.randint(4, 9), rng.randint(20, 45)
        self.free = self.rows * self.per_row - self.taken
        return f"A hall has {self.rows} rows of {self.per_row} seats; {self.taken} seats are taken. How many are free? \\boxed{{n}}", {}

    def solution(self):
        return str(self.free)

    def step(self, action):
        self.turn += 1
        m = re.search(r"\\boxed\{([^{}]*)\}", action)
        text = m.group(1).strip() if m else ""
        if not text.isdigit() or len(text) > 8:
            return "Digits only, please.", 0.0, False, self.turn >= self.max_turns, {}
        ok = int(text) == self.free
        return ("Yes." if ok else "No."), float(ok), ok, not ok and self.turn >= self.max_turns, {}
