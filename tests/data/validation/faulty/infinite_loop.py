# kind: infinite loop
# verdict: refuse
# probe: resources
import random
class LoopEnv:
    def reset(self, seed=None):
        self.x = random.Random(seed).randint(10, 9999)
        return f"Double {self.x}. Answer with \\boxed{{number}}.", {}
    def solution(self):
        return str(2 * self.x)
    def step(self, action):
        while not action:
            self.x += 1
        ok = f"\\boxed{{{2 * self.x}}}" in action
        return "done", float(ok), True, False, {}
