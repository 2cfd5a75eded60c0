# kind: non-determinism, time of day
# verdict: admitted
# probe: determinism
# needs: nothing: the sandbox's clock is part of the episode
import random
import re
import time


class ReactionEnv:
    """Seeds its generator with the time when it feels like it."""

    def __init__(self, max_turns=2, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        self.turn = 0
        self.rng = random.Random(seed)
        self.noise = random.Random(time.time_ns())
        self.a, self.b = self.rng.randint(100, 999), self.noise.randint(100, 999)
        return f"Two meters show {self.a} and {self.b}. What is the difference, larger minus smaller? \\boxed{{n}}", {}

    def solution(self):
        return str(abs(self.a - self.b))

    def step(self, action):
        self.turn += 1
        m = re.search(r"\\boxed\{\s*(\d{1,4})\s*\}", action)
        ok = m is not None and m.group(1) == self.solution()
        return ("ok" if ok else "no"), float(ok), ok, not ok and self.turn >= self.max_turns, {}
