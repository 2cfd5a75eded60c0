# kind: observation grows without bound
# verdict: refuse
# probe: resources, contract
import random
import re


class LSystemEnv:
    """The plant's text triples with each turn and is shown whole."""

    def __init__(self, max_turns=40, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turn = 0
        self.plant, self.stop = "F", rng.randint(3, 6)
        self.angle = rng.choice([25, 30, 90])
        return f"Plant: {self.plant}, angle {self.angle}. Rule F -> F+F. Say \\boxed{{grow}} {self.stop} times, then \\boxed{{stop}}.", {}

    def solution(self):
        return ["grow"] * (self.stop - self.turn) + ["stop"]

    def step(self, action):
        m = re.search(r"\\boxed\{(grow|stop)\}", action)
        if m and m.group(1) == "stop":
            won = self.turn == self.stop
            return ("Pruned in time." if won else "Too early or too late."), float(won), True, False, {}
        self.turn += 1
        self.plant = self.plant.replace("F", "F+F")
        return f"Plant: {self.plant}", 0.0, False, self.turn >= self.max_turns, {}
