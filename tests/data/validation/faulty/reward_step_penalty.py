# kind: negative shaping, a penalty for each step
# verdict: warn
# probe: reward
import random
import re


class DeliveryRouteEnv:
    """Minus 0.02 for each move, as in grid worlds."""

    def __init__(self, max_turns=20, **kwargs):
        self.max_turns = max_turns
        self.reset()

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turn = 0
        self.x, self.y = rng.randint(0, 2), rng.randint(0, 2)
        self.tx, self.ty = rng.randint(3, 6), rng.randint(3, 6)
        return f"You are at ({self.x},{self.y}); the house is at ({self.tx},{self.ty}). \\boxed{{east}}, west, north (y+1) or south.", {}

    def solution(self):
        return ["east"] * (self.tx - self.x) + ["north"] * (self.ty - self.y)

    def step(self, action):
        self.turn += 1
        m = re.search(r"\\boxed\{(east|west|north|south)\}", action)
        if m:
            dx, dy = {"east": (1, 0), "west": (-1, 0), "north": (0, 1), "south": (0, -1)}[m.group(1)]
            self.x, self.y = max(0, self.x + dx), max(0, self.y + dy)
        if (self.x, self.y) == (self.tx, self.ty):
            return "Delivered.", 1.0, True, False, {}
        return f"You are at ({self.x},{self.y}).", -0.02, False, self.turn >= self.max_turns, {}
