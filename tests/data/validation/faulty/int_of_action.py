# kind: breaks on text that is no number
# verdict: refuse
# probe: contract, malformed
import random
class DoubleEnv:
    def reset(self, seed=None):
        self.x = random.Random(seed).randint(1, 100)
        return f"Double {self.x}. Answer with the bare number.", {}
    def solution(self):
        return str(2 * self.x)
    def step(self, action):
        return "done", float(int(action) == 2 * self.x), True, False, {}
