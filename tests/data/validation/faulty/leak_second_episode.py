# kind: leak, first observation of the second episode
# verdict: refuse
# probe: determinism
import random
import re


class CoinJarEnv:
    """Counts coins; the greeting of the next episode tells what the last answer was."""

    VALUES = {"pennies": 1, "nickels": 5, "dimes": 10, "quarters": 25}

    def __init__(self, max_turns=1, **kwargs):
        self.max_turns = max_turns
        self.previous = None

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.counts = {name: rng.randint(3, 40) for name in self.VALUES}
        self.cents = sum(self.VALUES[name] * n for name, n in self.counts.items())
        greeting = f"(Last time it was {self.previous} cents.) " if self.previous is not None else ""
        self.previous = self.cents
        jar = ", ".join(f"{n} {name}" for name, n in self.counts.items())
        return f"{greeting}A jar holds {jar}. How many cents is that? \\boxed{{cents}}", {}

    def solution(self):
        return str(self.cents)

    def step(self, action):
        m = re.search(r"\\boxed\{\s*(\d{1,6})\s*\}", action)
        right = bool(m) and int(m.group(1)) == self.cents
        return ("right" if right else "wrong"), 1.0 if right else 0.0, True, False, {}
