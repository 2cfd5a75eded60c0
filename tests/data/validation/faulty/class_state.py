# kind: hidden global state, class attribute
# verdict: refuse
# probe: determinism, independence
import random
class SharedEnv:
    history = []
    def reset(self, seed=None):
        self.x = random.Random(seed).randint(10, 9999)
        self.turn = 0
        return f"Game {len(self.history)}. Double {self.x}. Answer with \\boxed{{number}}.", {}
    def solution(self):
        return str(2 * self.x)
    def step(self, action):
        self.turn += 1
        self.history.append(action[:5])
        ok = f"\\boxed{{{2 * self.x}}}" in action
        return f"move {len(self.history)}", float(ok), ok, self.turn >= 4, {}
