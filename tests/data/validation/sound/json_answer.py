"""Structured answer parsed with json."""
import json
import random


class InvoiceEnv(TextEnv):
    def reset(self, seed=None):
        super().reset(seed)
        self.lines = {name: (self.rng.randint(1, 9), self.rng.randint(2, 30)) for name in self.rng.sample(
            ["paper", "ink", "lamp", "desk", "pen"], 3)}
        text = "; ".join(f"{n} x {name} at {price}" for name, (n, price) in self.lines.items())
        return f'Invoice: {text}. Give {{"total": number, "items": number}} as JSON.', {}

    def _expected(self):
        return {"total": sum(n * p for n, p in self.lines.values()), "items": sum(n for n, _ in self.lines.values())}

    def solution(self):
        return json.dumps(self._expected())

    def step(self, action):
        start, end = action.find("{"), action.rfind("}")
        try:
            value = json.loads(action[start:end + 1])
        except (ValueError, RecursionError):
            value = None
        return "done", float(value == self._expected()), True, False, {}
