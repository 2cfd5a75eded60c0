"""Programs of known difficulty for players that toss a coin."""

COIN = """
class CoinEnv(TextEnv):
    def reset(self, seed=None):
        super().reset(seed)
        self.side = self.rng.choice(["heads", "tails"])
        return f"Coin {self.rng.randint(0, 999999)}: heads or tails?", {}

    def step(self, action):
        return "", float(self.answer(action) == self.side), True, False, {}

    def hint(self):
        return f"It shows {self.side}."

    def solution(self):
        return self.side
"""

WALK = """
class WalkEnv(TextEnv):
    def reset(self, seed=None):
        super().reset(seed)
        self.left = self.rng.randint(1, 5)
        return f"{self.left} steps to go", {}

    def step(self, action):
        self.left -= 1
        return f"{self.left} steps to go", float(self.left == 0), self.left == 0, False, {}
"""

BROKEN = """
class BrokenEnv:
    def __init__(self):
        raise ValueError("never")

    def reset(self, seed=None):
        return "", {}

    def step(self, action):
        return "", 0.0, True, False, {}
"""
