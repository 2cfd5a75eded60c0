# kind: a trivially repeated action wins
# verdict: refuse
# probe: know_nothing
import random
import re


class SokobanLiteEnv:
    """Push the crate to the mark in a corridor; pushing is all it takes."""

    def __init__(self, max_turns=25, **kwargs):
        self.max_turns = max_turns
        self.reset()

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turn = 0
        self.crate, self.goal = rng.randint(2, 4), rng.randint(7, 12)
        self.colour = rng.choice(["red", "blue", "green"])
        return f"A {self.colour} crate stands at {self.crate}, the mark is at {self.goal}. Actions: push, pull, wait. Use \\boxed{{action}}.", {}

    def solution(self):
        return ["push"] * (self.goal - self.crate)

    def step(self, action):
        self.turn += 1
        match = re.search(r"\\boxed\{(push|pull|wait)\}", action)
        if match:
            move = match.group(1)
            self.crate += {"push": 1, "pull": -1, "wait": 0}[move]
            self.crate = max(0, self.crate)
        if self.crate == self.goal:
            return "The crate is on the mark.", 1.0, True, False, {}
        return f"The crate is at {self.crate}.", 0.0, False, self.turn >= self.max_turns, {}
