"""Common answers: the parity of a bit string."""
import random
import re


class ParityEnv:
    def __init__(self, max_turns=1, length=24, **kwargs):
        self.max_turns, self.length = max_turns, length

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.bits = [rng.randint(0, 1) for _ in range(self.length)]
        return f"Bits: {''.join(map(str, self.bits))}. What is their parity, 0 for even and 1 for odd? \\boxed{{bit}}", {}

    def solution(self):
        return str(sum(self.bits) % 2)

    def step(self, action):
        m = re.search(r"\\boxed\{\s*([01])\s*\}", action)
        ok = m is not None and int(m.group(1)) == sum(self.bits) % 2
        return ("even" if sum(self.bits) % 2 == 0 else "odd"), float(ok), True, False, {}
