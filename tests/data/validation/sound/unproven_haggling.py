"""No solution(): admitted as unproven."""
import random
import re


class HaggleEnv:
    """Sell a rug above the reserve; the buyer's patience is hidden, his counter offers tell."""

    def __init__(self, max_turns=8, **kwargs):
        self.max_turns = max_turns
        self.reset()

    def reset(self, seed=None):
        self.rng = random.Random(seed)
        self.turn = 0
        self.reserve = self.rng.randint(40, 80)
        self.limit = self.reserve + self.rng.randint(25, 60)
        self.offer = self.reserve - self.rng.randint(5, 15)
        return f"You sell a rug; below {self.reserve} you lose. The buyer offers {self.offer}. Ask \\boxed{{price}}; the more, the better you are paid.", {}

    def step(self, action):
        self.turn += 1
        m = re.search(r"\\boxed\{\s*(\d{1,4})\s*\}", action)
        price = int(m.group(1)) if m else 9999
        if price <= self.limit and price >= self.reserve:
            gain = (price - self.reserve) / (self.limit - self.reserve)
            return f"Sold for {price}.", round(gain, 3), True, False, {}
        if price < self.reserve:
            return "Sold at a loss.", 0.0, True, False, {}
        self.offer = min(self.limit, self.offer + self.rng.randint(2, 6))
        return f"Too dear. He offers {self.offer}.", 0.0, False, self.turn >= self.max_turns, {}
