# kind: reward out of range
# verdict: refuse
# probe: reward
import random
class PointsEnv:
    def reset(self, seed=None):
        self.x = random.Random(seed).randint(10, 9999)
        return f"Double {self.x}. Answer with \\boxed{{number}}.", {}
    def solution(self):
        return str(2 * self.x)
    def step(self, action):
        ok = f"\\boxed{{{2 * self.x}}}" in action
        return "done", 10.0 if ok else 0.0, True, False, {}
