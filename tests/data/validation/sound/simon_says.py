"""A sequence to repeat from the end, one word a turn."""
import random
import re


class ReverseSimonEnv:
    COLOURS = ["red", "green", "blue", "yellow"]

    def __init__(self, max_turns=12, **kwargs):
        self.max_turns = max_turns
        self.reset()

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turn, self.at = 0, 0
        self.sequence = [rng.choice(self.COLOURS) for _ in range(rng.randint(5, 7))]
        return f"Lights: {' '.join(self.sequence)}. Repeat them from the last to the first, one each turn: \\boxed{{colour}}. A mistake ends the game.", {}

    def solution(self):
        return self.sequence[::-1][self.at :]

    def step(self, action):
        self.turn += 1
        m = re.search(r"\\boxed\{\s*(\w+)\s*\}", action.lower())
        if not m or m.group(1) != self.sequence[::-1][self.at]:
            return "Wrong light.", 0.0, True, False, {}
        self.at += 1
        if self.at == len(self.sequence):
            return "Perfect memory.", 1.0, True, False, {}
        return f"{self.at} right.", 0.0, False, self.turn >= self.max_turns, {}
