"""No solution(): allowed, and reported as unproven."""
import random
import re


class MarketEnv:
    def __init__(self, max_turns=8, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        self.rng = random.Random(seed)
        self.cash, self.grain, self.price, self.turn = 100.0, 0, 10.0, 0
        self.trend = self.rng.choice([-1, 1])
        return self._view(), {}

    def _view(self):
        return f"Cash {self.cash:.0f}, grain {self.grain}, price {self.price:.1f}. \\boxed{{buy N}}, \\boxed{{sell N}} or \\boxed{{wait}}."

    def step(self, action):
        self.turn += 1
        match = re.search(r"\\boxed\{(buy|sell) (\d{1,4})\}", action)
        if match:
            verb, n = match.group(1), int(match.group(2))
            if verb == "buy" and n * self.price <= self.cash:
                self.cash, self.grain = self.cash - n * self.price, self.grain + n
            elif verb == "sell" and n <= self.grain:
                self.cash, self.grain = self.cash + n * self.price, self.grain - n
        if self.rng.random() < 0.25:
            self.trend = -self.trend
        self.price = max(1.0, self.price + self.trend * self.rng.uniform(0.5, 2.0))
        if self.turn >= self.max_turns:
            worth = self.cash + self.grain * self.price
            return f"Closing. You own {worth:.0f}.", min(1.0, max(0.0, (worth - 100) / 150)), True, False, {}
        return self._view(), 0.0, False, False, {}
