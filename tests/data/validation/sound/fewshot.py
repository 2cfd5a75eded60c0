import random
class FewShotEnv(TextEnv):
    def reset(self, seed=None):
        super().reset(seed)
        a, b = self.rng.randint(11, 99), self.rng.randint(11, 99)
        self.x = a * b
        return f"Example: 3 * 4, the answer is 12. Now compute {a} * {b}.", {}
    def solution(self): return "\\boxed{%d}" % self.x
    def hint(self): return "Split one factor into tens and ones, multiply separately and add."
    def step(self, action):
        return "ok", float(self.answer(action) == str(self.x)), True, False, {}
