"""A coin flip wins half; that is honest."""
import random
import re


class PrimalityEnv:
    def reset(self, seed=None):
        rng = random.Random(seed)
        self.prime = rng.random() < 0.5
        while True:
            self.n = rng.randint(101, 999)
            if all(self.n % d for d in range(2, 32)) == self.prime:
                break
        return f"Is {self.n} prime? Answer \\boxed{{yes}} or \\boxed{{no}}.", {}

    def hint(self):
        return "Try the primes up to 31 as divisors, then answer \\boxed{yes} or \\boxed{no}."

    def solution(self):
        return "yes" if self.prime else "no"

    def step(self, action):
        match = re.search(r"\\boxed\{(yes|no)\}", action.lower())
        ok = match is not None and (match.group(1) == "yes") == self.prime
        return "done", float(ok), True, False, {}
