# kind: hidden global state, module variable
# verdict: refuse
# probe: determinism, independence
import random
import re

GAMES_PLAYED = 0


class CardSumEnv:
    """The difficulty rises with a counter in the module."""

    def __init__(self, max_turns=2, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        global GAMES_PLAYED
        GAMES_PLAYED += 1
        rng = random.Random(seed)
        self.turn = 0
        self.cards = [rng.randint(2, 11) for _ in range(min(12, 3 + GAMES_PLAYED // 4))]
        return f"Cards on the table: {self.cards}. What do they add up to? \\boxed{{sum}}", {}

    def solution(self):
        return str(sum(self.cards))

    def step(self, action):
        self.turn += 1
        m = re.search(r"\\boxed\{\s*(\d{1,4})\s*\}", action)
        ok = m is not None and int(m.group(1)) == sum(self.cards)
        return ("Yes." if ok else "No."), float(ok), ok, not ok and self.turn >= self.max_turns, {}
