# kind: hidden global state, class attribute
# verdict: refuse
# probe: determinism, independence
import random
import re


class AuctionLogEnv:
    """Bids of earlier instances stay in a list on the class."""

    history = []

    def __init__(self, max_turns=6, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turn, self.value = 0, rng.randint(30, 90)
        self.lot = rng.choice(["clock", "vase", "map"])
        return f"The {self.lot} is worth {self.value} to you. Bid the highest even number below that: \\boxed{{bid}}.", {}

    def solution(self):
        return str(self.value - 1 - (self.value - 1) % 2)

    def step(self, action):
        self.turn += 1
        m = re.search(r"\\boxed\{\s*(\d{1,4})\s*\}", action)
        bid = int(m.group(1)) if m else 0
        self.history.append(bid)
        if str(bid) == self.solution():
            return "Sold.", 1.0, True, False, {}
        return f"Average bid so far: {sum(self.history) / len(self.history):.1f}.", 0.0, False, self.turn >= self.max_turns, {}
