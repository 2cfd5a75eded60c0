# kind: wrong types that compare equal, 1 for True
# verdict: refuse
# probe: contract
import random
import re


class ElevatorEnv:
    """Returns 1 and 0 for terminated and truncated."""

    def __init__(self, max_turns=3, **kwargs):
        self.max_turns = max_turns
        self.reset()

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turn = 0
        self.floor = rng.randint(2, 20)
        self.moves = [rng.choice([-1, 1]) * rng.randint(1, 9) for _ in range(6)]
        self.end = self.floor + sum(self.moves)
        return f"A lift stands on floor {self.floor} and moves by {self.moves}. On which floor is it then? \\boxed{{floor}}", {}

    def solution(self):
        return str(self.end)

    def step(self, action):
        self.turn += 1
        m = re.search(r"\\boxed\{\s*(-?\d{1,4})\s*\}", action)
        won = int(m is not None and int(m.group(1)) == self.end)
        return ("Ding." if won else "No."), float(won), won, int(self.turn >= self.max_turns), {}
