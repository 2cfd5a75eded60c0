# kind: observation is empty
# verdict: refuse
# probe: observation
import random
class SilentEnv:
    def reset(self, seed=None):
        self.x = random.Random(seed).randint(10, 9999)
        self.turn = 0
        return "", {}
    def solution(self):
        return str(2 * self.x)
    def step(self, action):
        self.turn += 1
        ok = f"\\boxed{{{2 * self.x}}}" in action
        return f"Double {self.x}", float(ok), ok, self.turn >= 4, {}
