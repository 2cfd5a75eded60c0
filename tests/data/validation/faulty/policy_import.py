# kind: refused import
# verdict: refuse
# probe: policy, load
import os
import random
class FileSumEnv:
    def reset(self, seed=None):
        self.rng = random.Random(seed)
        self.a, self.b = self.rng.randint(10, 99), self.rng.randint(10, 99)
        return f"{self.a}+{self.b}=? {len(os.listdir('.'))} files. \\boxed{{}}", {}
    def step(self, action):
        ok = f"\\boxed{{{self.a + self.b}}}" in action
        return "done", float(ok), True, False, {}
