# kind: solution() raises
# verdict: refuse
# probe: contract, solution
import random
class CrashSolutionEnv:
    def reset(self, seed=None):
        self.x = random.Random(seed).randint(10, 9999)
        return f"Double {self.x}. Answer with \\boxed{{number}}.", {}
    def solution(self):
        return str(2 * self.y)
    def step(self, action):
        ok = action.strip() == f"\\boxed{{{2 * self.x}}}"
        return "done", float(ok), True, False, {}
