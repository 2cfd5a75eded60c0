# kind: statement and checker disagree, solution() follows the statement
# verdict: refuse
# probe: solution
import random
import re


class BudgetEnv:
    """'At most' in the text, 'less than' in the code."""

    def __init__(self, max_turns=1, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.price, self.count = rng.randint(3, 19), rng.randint(5, 40)
        self.budget = self.price * self.count
        return f"Pens cost {self.price} each. You may spend at most {self.budget}. How many can you buy at most? \\boxed{{count}}", {}

    def solution(self):
        return str(self.budget // self.price)

    def step(self, action):
        m = re.search(r"\\boxed\{\s*(\d{1,5})\s*\}", action)
        if not m:
            return "No number.", 0.0, True, False, {}
        n = int(m.group(1))
        ok = n * self.price < self.budget and (n + 1) * self.price >= self.budget
        return ("Good buy." if ok else "No."), float(ok), True, False, {}
