# kind: infinite loop on some actions
# verdict: refuse
# probe: resources
import random
import re


class BridgeBuilderEnv:
    """Looks for a free spot by rejection; none is left when the river is full."""

    def __init__(self, max_turns=10, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        self.rng = random.Random(seed)
        self.turn, self.stones = 0, set()
        self.width = self.rng.randint(3, 5)
        self.goal = self.rng.randint(2, self.width - 1)
        return f"The river is {self.width} wide. Put exactly {self.goal} stones, one per turn, with \\boxed{{stone}}, then \\boxed{{cross}}.", {}

    def solution(self):
        return ["stone"] * (self.goal - len(self.stones)) + ["cross"]

    def step(self, action):
        self.turn += 1
        m = re.search(r"\\boxed\{(stone|cross)\}", action)
        if m and m.group(1) == "cross":
            won = len(self.stones) == self.goal
            return ("Across." if won else "You fall in."), float(won), True, False, {}
        spot = self.rng.randrange(self.width)
        while spot in self.stones:
            spot = self.rng.randrange(self.width)
        self.stones.add(spot)
        return f"{len(self.stones)} stones lie in the river.", 0.0, False, self.turn >= self.max_turns, {}
