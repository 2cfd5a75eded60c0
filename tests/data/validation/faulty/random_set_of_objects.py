# kind: non-determinism, order of a set of objects
# verdict: refuse
# probe: determinism
import random
import re


class Stall:
    def __init__(self, name, price):
        self.name, self.price = name, price


class BazaarEnv:
    """The cheapest of the first three stalls; their order is that of a set of objects."""

    NAMES = ["figs", "dates", "nuts", "oil", "soap", "silk", "salt", "tea"]

    def __init__(self, max_turns=2, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turn = 0
        stalls = {Stall(name, rng.randint(3, 99)) for name in self.NAMES}
        self.row = list(stalls)
        self.best = min(self.row[:3], key=lambda s: (s.price, s.name)).name
        listing = ", ".join(f"{s.name} {s.price}" for s in self.row)
        return f"Stalls in a row: {listing}. Which of the first three is the cheapest? \\boxed{{name}}", {}

    def solution(self):
        return self.best

    def step(self, action):
        self.turn += 1
        m = re.search(r"\\boxed\{([a-z]+)\}", action)
        ok = m is not None and m.group(1) == self.best
        return ("Bought." if ok else "Hm."), float(ok), ok, not ok and self.turn >= self.max_turns, {}
