# kind: non-determinism, id() of an object
# verdict: refuse
# probe: determinism
import random
import re


class TicketCounterEnv:
    """A ticket number is made of id(self)."""

    def __init__(self, max_turns=2, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turn = 0
        self.number = id(self) // 16 % 10000 + rng.randint(0, 99)
        return f"Your ticket is {self.number}. What is its digit sum? \\boxed{{sum}}", {}

    def solution(self):
        return str(sum(map(int, str(self.number))))

    def step(self, action):
        self.turn += 1
        m = re.search(r"\\boxed\{\s*(\d{1,3})\s*\}", action)
        ok = m is not None and m.group(1) == self.solution()
        return ("Next, please." if ok else "Count again."), float(ok), ok, not ok and self.turn >= self.max_turns, {}
