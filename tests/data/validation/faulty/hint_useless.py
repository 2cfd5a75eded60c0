# kind: hint, says nothing
# verdict: warn
# probe: hint
import random
import re


class SnailClimbEnv:
    """A snail climbs a well by day and slips back by night."""

    def __init__(self, max_turns=3, **kwargs):
        self.max_turns = max_turns
        self.reset()

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turn = 0
        self.up, self.down, self.depth = rng.randint(5, 9), rng.randint(1, 4), rng.randint(30, 90)
        height, self.days = 0, 0
        while True:
            self.days += 1
            height += self.up
            if height >= self.depth:
                break
            height -= self.down
        return (
            f"A snail sits at the bottom of a well that is {self.depth} feet deep. By day it climbs {self.up} feet, by "
            f"night it slips back {self.down}. On which day does it reach the top? \\boxed{{day}}"
        ), {}

    def hint(self):
        return "Think carefully and do your best! You can do it."

    def solution(self):
        return str(self.days)

    def step(self, action):
        self.turn += 1
        m = re.search(r"\\boxed\{\s*(\d{1,4})\s*\}", action)
        if m and int(m.group(1)) == self.days:
            return "It is out.", 1.0, True, False, {}
        return "Not on that day.", 0.0, False, self.turn >= self.max_turns, {}
