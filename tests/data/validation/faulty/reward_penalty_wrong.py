# kind: negative shaping, minus one for a loss
# verdict: refuse
# probe: reward
import random
import re


class CourtroomEnv(TextEnv):
    """A wrong verdict is paid -1."""

    def reset(self, seed=None):
        super().reset(seed)
        self.hours = self.rng.sample(range(1, 12), 3)
        self.names = self.rng.sample(["Ames", "Bode", "Cole", "Dunn"], 3)
        self.late = self.names[self.hours.index(max(self.hours))]
        facts = "; ".join(f"{n} came at {h} o'clock" for n, h in zip(self.names, self.hours))
        return f"{facts}. Who came last? \\boxed{{name}}", {}

    def solution(self):
        return self.late

    def step(self, action):
        ok = self.answer(action).lower() == self.late.lower()
        return ("Verdict accepted." if ok else "Appeal."), 1.0 if ok else -1.0, True, False, {}
