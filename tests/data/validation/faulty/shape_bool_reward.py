# kind: wrong types that compare equal, True for 1.0
# verdict: refuse
# probe: contract
import random
import re


class PostageEnv:
    """Returns a truth value as reward."""

    def __init__(self, max_turns=1, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.grams = rng.randint(20, 2000)
        self.cents = 85 + 30 * (self.grams // 100)
        return f"A letter costs 85 cents and 30 for every full 100 g. What does one of {self.grams} g cost? \\boxed{{cents}}", {}

    def solution(self):
        return str(self.cents)

    def step(self, action):
        m = re.search(r"\\boxed\{\s*(\d{1,5})\s*\}", action)
        return "Stamped.", m is not None and int(m.group(1)) == self.cents, True, False, {}
