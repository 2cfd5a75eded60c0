# kind: reward out of range, NaN
# verdict: refuse
# probe: contract, reward
import random, re
class RatioEnv:
    def reset(self, seed=None):
        self.x = random.Random(seed).randint(2, 100)
        return f"Double {self.x}. Answer with \\boxed{{number}}.", {}
    def solution(self):
        return str(2 * self.x)
    def step(self, action):
        m = re.search(r"\\boxed\{(-?\d+)\}", action)
        reward = float("nan") if not m else float(int(m.group(1)) == 2 * self.x)
        return "done", reward, True, False, {}
