# kind: breaks on what is no JSON object
# verdict: refuse
# probe: contract, malformed
import json
import random


class InvoiceJsonEnv(TextEnv):
    """Only JSONDecodeError is caught; a list or a number raises further down."""

    def __init__(self, max_turns=3, **kwargs):
        super().__init__(max_turns)

    def reset(self, seed=None):
        super().reset(seed)
        self.net, self.rate = self.rng.randint(10, 90) * 100, self.rng.choice([5, 10, 20])
        return f"Net {self.net}, tax rate {self.rate} %. Send a JSON object with the keys tax and gross.", {}

    def solution(self):
        tax = self.net * self.rate // 100
        return json.dumps({"tax": tax, "gross": self.net + tax})

    def step(self, action):
        self.turn += 1
        try:
            data = json.loads(self.answer(action))
        except json.JSONDecodeError:
            return "Not JSON.", 0.0, False, self.turn >= self.max_turns, {}
        tax = self.net * self.rate // 100
        ok = data.get("tax") == tax and data.get("gross") == self.net + tax
        return ("Paid." if ok else "Returned."), float(ok), ok, not ok and self.turn >= self.max_turns, {}
