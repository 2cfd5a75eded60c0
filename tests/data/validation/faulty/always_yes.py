# kind: the answer hardly depends on the puzzle
# verdict: refuse
# probe: know_nothing
import random
class ParityEnv:
    def reset(self, seed=None):
        self.x = 2 * random.Random(seed).randint(1, 500)
        return f"Is {self.x} even? Answer \\boxed{{yes}} or \\boxed{{no}}.", {}
    def solution(self):
        return "yes" if self.x % 2 == 0 else "no"
    def step(self, action):
        ok = f"\\boxed{{{self.solution()}}}" in action
        return "done", float(ok), True, False, {}
