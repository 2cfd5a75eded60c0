import random
class NextTermEnv(TextEnv):
    def reset(self, seed=None):
        super().reset(seed)
        a, d = self.rng.randint(1, 20), self.rng.choice([2, 3, 5, 7])
        self.s = [a + d * i for i in range(6)]
        return f"Continue: {', '.join(map(str, self.s[:-1]))}, ?", {}
    def solution(self): return str(self.s[-1])
    def step(self, action):
        try: ok = float(self.answer(action)) == self.s[-1]
        except (ValueError, OverflowError): ok = False
        return "ok", float(ok), True, False, {}
