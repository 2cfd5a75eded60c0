"""Stochastic feedback from the instance's own generator; choose the better arm in the end."""
import random
import re


class BanditEnv:
    def __init__(self, max_turns=15, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        random.seed(seed)
        names = ["red", "blue", "gold", "pink"]
        self.odds = {name: random.uniform(0.1, 0.4) for name in names}
        self.best = random.choice(names)
        self.odds[self.best] = 0.9
        self.turn = 0
        return "Four levers: red, blue, gold, pink. Try them with \\boxed{pull red}, then \\boxed{choose red} the best.", {}

    def solution(self):
        return f"choose {self.best}"

    def step(self, action):
        self.turn += 1
        late = self.turn >= self.max_turns
        match = re.search(r"\\boxed\{(pull|choose) (red|blue|gold|pink)\}", action)
        if match is None:
            return "Pull or choose a lever.", 0.0, False, late, {}
        verb, name = match.groups()
        if verb == "choose":
            return "The end.", float(name == self.best), True, False, {}
        return ("A coin!" if random.random() < self.odds[name] else "Nothing."), 0.0, False, late, {}
