# kind: wrong return shape, four values
# verdict: refuse
# probe: contract
import random
class DoubleEnv:
    def reset(self, seed=None):
        self.x = random.Random(seed).randint(1, 100)
        return f"Double {self.x}. Answer with \\boxed{{number}}.", {}
    def step(self, action):
        return "done", float(action == f"\\boxed{{{2 * self.x}}}"), True, {}
