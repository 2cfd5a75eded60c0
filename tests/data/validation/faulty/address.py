# kind: non-determinism, memory address
# verdict: refuse
# probe: determinism
import random
class Token:
    pass
class AddressEnv:
    def reset(self, seed=None):
        rng = random.Random(seed)
        self.tokens = [Token() for _ in range(3)]
        self.x = rng.randint(1, 1000)
        return f"{self.tokens[0]!r}: double {self.x}. Answer with \\boxed{{number}}.", {}
    def solution(self):
        return str(2 * self.x)
    def step(self, action):
        ok = f"\\boxed{{{2 * self.x}}}" in action
        return "done", float(ok), True, False, {}
