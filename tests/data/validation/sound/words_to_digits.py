"""Numbers in words are data here."""
import random
import re

ONES = "zero one two three four five six seven eight nine".split()
TENS = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


class ChequeEnv:
    def __init__(self, max_turns=2, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turn = 0
        self.value = rng.choice([t * 10 + o for t in range(2, 10) for o in range(1, 10)])
        words = f"{TENS[self.value // 10]}-{ONES[self.value % 10]}"
        payee = rng.choice(["the baker", "the school", "Mr Hobbs", "the county"])
        return f"A cheque to {payee} is made out for {words} pounds. Write the amount in digits: \\boxed{{number}}", {}

    def solution(self):
        return str(self.value)

    def step(self, action):
        self.turn += 1
        m = re.search(r"\\boxed\{\s*(\d{1,5})\s*\}", action)
        ok = m is not None and int(m.group(1)) == self.value
        return ("Cashed." if ok else "Bounced."), float(ok), ok, not ok and self.turn >= self.max_turns, {}
