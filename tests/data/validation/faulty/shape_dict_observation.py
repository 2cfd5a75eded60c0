# kind: wrong return shape, dictionary as observation
# verdict: refuse
# probe: contract
import random


class SensorGridEnv:
    """Observations are dictionaries, as in robotics."""

    def __init__(self, max_turns=5, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        self.rng = random.Random(seed)
        self.turn = 0
        self.values = [self.rng.randint(1, 50) for _ in range(6)]
        return {"task": "Which sensor (1-6) shows the most?", "values": self.values}, {}

    def solution(self):
        return str(self.values.index(max(self.values)) + 1)

    def step(self, action):
        ok = action.strip().strip("\\boxed{}") == self.solution()
        return {"task": "done"}, float(ok), True, False, {}
