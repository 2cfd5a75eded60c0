# kind: hidden global state, mutable default argument
# verdict: refuse
# probe: determinism, independence
import random
import re


class BackpackEnv:
    """Items collect in a default argument."""

    ITEMS = {"rope": 4, "lamp": 3, "tent": 9, "pot": 5, "axe": 7}

    def __init__(self, max_turns=6, carried=[], **kwargs):
        self.max_turns = max_turns
        self.carried = carried

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turn = 0
        self.goal = sorted(rng.sample(sorted(self.ITEMS), 2))
        weights = ", ".join(f"{k} {v} kg" for k, v in self.ITEMS.items())
        total = sum(self.ITEMS[g] for g in self.goal)
        self.total = total
        return f"Items: {weights}. Pack two that weigh {total} kg together, one by one: \\boxed{{item}}.", {}

    def solution(self):
        return [f"\\boxed{{{item}}}" for item in self.goal]

    def step(self, action):
        self.turn += 1
        m = re.search(r"\\boxed\{([a-z]+)\}", action)
        if m and m.group(1) in self.ITEMS:
            self.carried.append(m.group(1))
        weight = sum(self.ITEMS[item] for item in self.carried[-2:])
        if len(self.carried) >= 2 and weight == self.total:
            return "Packed.", 1.0, True, False, {}
        return f"You carry {len(self.carried)} things.", 0.0, False, self.turn >= self.max_turns, {}
