# kind: non-determinism, time of day
# verdict: refuse
# probe: determinism, seeds
import random, time
class ClockEnv:
    def reset(self, seed=None):
        self.x = int(time.time() * 1e6) % 100003
        return f"Add one to {self.x}. Answer with \\boxed{{number}}.", {}
    def solution(self):
        return str(self.x + 1)
    def step(self, action):
        ok = f"\\boxed{{{self.x + 1}}}" in action
        return "done", float(ok), True, False, {}
