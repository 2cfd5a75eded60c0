# kind: infinite episode
# verdict: refuse
# probe: termination
import random
import re


class SafeCrackerEnv:
    """Ends on the right combination only; max_turns is stored and never read."""

    def __init__(self, max_turns=10, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.a, self.b = rng.randint(12, 99), rng.randint(12, 99)
        self.code = self.a * self.b
        return f"The combination is the product of {self.a} and {self.b}. Enter \\boxed{{code}}.", {}

    def solution(self):
        return str(self.code)

    def step(self, action):
        m = re.search(r"\\boxed\{\s*(\d{1,6})\s*\}", action)
        if m and int(m.group(1)) == self.code:
            return "Open.", 1.0, True, False, {}
        return "Locked. Try again.", 0.0, False, False, {}
