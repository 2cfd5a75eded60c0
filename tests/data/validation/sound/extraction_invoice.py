"""Find a value in a record; its place varies."""
import random
import re


class InvoiceReaderEnv(TextEnv):
    def __init__(self, max_turns=2, **kwargs):
        super().__init__(max_turns)

    def reset(self, seed=None):
        super().reset(seed)
        rng = self.rng
        fields = {"number": rng.randint(1000, 9999), "net": rng.randint(100, 900), "tax": rng.randint(10, 99),
                  "weight": rng.randint(2, 60), "items": rng.randint(101, 140)}
        keys = sorted(fields)
        rng.shuffle(keys)
        self.key = rng.choice(keys)
        self.value = fields[self.key]
        rows = "\n".join(f"{key}: {fields[key]}" for key in keys)
        return f"INVOICE\n{rows}\n\nWhat does the field '{self.key}' say? \\boxed{{value}}", {}

    def solution(self):
        return str(self.value)

    def step(self, action):
        self.turn += 1
        ok = self.answer(action) == str(self.value)
        return ("Yes." if ok else "No."), float(ok), ok, not ok and self.turn >= self.max_turns, {}
