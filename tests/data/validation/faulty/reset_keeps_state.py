# kind: hidden global state, reset forgets a field
# verdict: refuse
# probe: determinism
import random
class LeftoverEnv:
    def __init__(self, max_turns=6):
        self.max_turns = max_turns
        self.log = []
    def reset(self, seed=None):
        self.x = random.Random(seed).randint(10, 9999)
        self.turn = 0
        return f"Double {self.x}. Answer with \\boxed{{number}}.", {}
    def solution(self):
        return str(2 * self.x)
    def step(self, action):
        self.turn += 1
        self.log.append(self.turn)
        ok = f"\\boxed{{{2 * self.x}}}" in action
        return f"{len(self.log)} attempts", float(ok), ok, self.turn >= self.max_turns, {}
