# kind: breaks on huge actions by recursion
# verdict: refuse
# probe: malformed, contract
import random
import re


class BalancedEnv(TextEnv):
    """Evaluates a bracket expression by recursion over its characters, without a base case for junk."""

    def __init__(self, max_turns=3, **kwargs):
        super().__init__(max_turns)

    def reset(self, seed=None):
        super().reset(seed)
        self.a, self.b = self.rng.randint(2, 40), self.rng.randint(2, 40)
        return f"Write a sum of exactly two positive numbers that is {self.a + self.b + 2}, such as 3+4, in \\boxed{{}}.", {}

    def solution(self):
        return f"{self.a + 1}+{self.b + 1}"

    def _value(self, text):
        if text.isdigit() and len(text) < 6:
            return int(text)
        left, right = text.split("+")
        return self._value(left) + self._value(right)

    def step(self, action):
        self.turn += 1
        total = self._value(self.answer(action))
        ok = total == self.a + self.b + 2
        return ("Yes." if ok else "No."), float(ok), ok, not ok and self.turn >= self.max_turns, {}
