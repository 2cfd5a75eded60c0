# kind: wrong return shape, text as reward
# verdict: refuse
# probe: contract
import random
class DoubleEnv:
    def reset(self, seed=None):
        self.x = random.Random(seed).randint(1, 100)
        return f"Double {self.x}. Answer with \\boxed{{number}}.", {}
    def step(self, action):
        return "done", "1.0" if action == f"\\boxed{{{2 * self.x}}}" else "0.0", True, False, {}
