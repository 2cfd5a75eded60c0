# kind: negative shaping
# verdict: warn
# probe: reward
import random
class PenaltyEnv:
    def reset(self, seed=None):
        self.x, self.turn = random.Random(seed).randint(10, 9999), 0
        return f"Double {self.x}. Answer with \\boxed{{number}}.", {}
    def solution(self):
        return str(2 * self.x)
    def step(self, action):
        self.turn += 1
        ok = f"\\boxed{{{2 * self.x}}}" in action
        return "right" if ok else "wrong", 1.0 if ok else -0.1, ok, self.turn >= 5, {}
