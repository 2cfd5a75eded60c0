# kind: infinite episode
# verdict: refuse
# probe: termination
import random
class PatientEnv:
    def reset(self, seed=None):
        self.x = random.Random(seed).randint(10, 9999)
        return f"Double {self.x}. Answer with \\boxed{{number}}.", {}
    def solution(self):
        return str(2 * self.x)
    def step(self, action):
        ok = f"\\boxed{{{2 * self.x}}}" in action
        return "right" if ok else "try again", float(ok), ok, False, {}
