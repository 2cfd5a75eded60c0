"""Single turn, boxed number."""
import random
import re


class ArithmeticEnv:
    def __init__(self, max_turns=1, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.a, self.b, self.c = rng.randint(11, 99), rng.randint(11, 99), rng.randint(2, 9)
        return f"Compute ({self.a} + {self.b}) * {self.c}. Answer with \\boxed{{number}}.", {}

    def solution(self):
        return str((self.a + self.b) * self.c)

    def hint(self):
        return "Add first, then multiply; give the product in \\boxed{}."

    def step(self, action):
        found = re.findall(r"\\boxed\{(-?\d{1,9})\}", action)
        ok = bool(found) and int(found[-1]) == (self.a + self.b) * self.c
        return ("Correct." if ok else "Wrong."), float(ok), True, False, {}
