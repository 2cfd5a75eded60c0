# kind: seed ignored, generator from a constant
# verdict: refuse
# probe: determinism, seeds
import random
class UnseededEnv:
    def __init__(self, max_turns=5):
        self.max_turns = max_turns
        self.rng = random.Random(0)
    def reset(self, seed=None):
        self.x = self.rng.randint(1, 10**6)
        self.turn = 0
        return f"Add one to {self.x}. Answer with \\boxed{{number}}.", {}
    def solution(self):
        return str(self.x + 1)
    def step(self, action):
        self.turn += 1
        ok = f"\\boxed{{{self.x + 1}}}" in action
        return "done", float(ok), ok, self.turn >= self.max_turns, {}
