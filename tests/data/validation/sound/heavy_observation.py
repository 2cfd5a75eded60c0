"""A long document; the answer has to be computed from it."""
import random
import re


class CensusEnv:
    NAMES = ["Adler", "Brandt", "Conrad", "Decker", "Ebert", "Frank", "Gruber", "Haas"]

    def __init__(self, max_turns=2, rows=150, **kwargs):
        self.max_turns, self.rows = max_turns, rows
        self.reset()

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turn = 0
        self.people = [(rng.choice(self.NAMES), rng.randint(1800, 1899), rng.choice(["mason", "farmer", "smith"])) for _ in range(self.rows)]
        self.name = rng.choice(self.NAMES)
        self.oldest = min(year for name, year, _ in self.people if name == self.name) if any(p[0] == self.name for p in self.people) else 1800
        listing = "\n".join(f"{i + 1}. {name}, born {year}, {trade}" for i, (name, year, trade) in enumerate(self.people))
        return f"{listing}\n\nIn which year was the oldest {self.name} born? \\boxed{{year}}", {}

    def solution(self):
        return str(self.oldest)

    def step(self, action):
        self.turn += 1
        m = re.search(r"\\boxed\{\s*(\d{4})\s*\}", action)
        ok = m is not None and int(m.group(1)) == self.oldest
        return ("Found." if ok else "Not so."), float(ok), ok, not ok and self.turn >= self.max_turns, {}
