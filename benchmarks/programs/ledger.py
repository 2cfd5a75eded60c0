import json
import random
from dataclasses import dataclass, field


@dataclass
class Account:
    owner: str
    balance: int
    history: list = field(default_factory=list)

    def move(self, amount):
        if self.balance + amount < 0:
            raise ValueError("not enough money")
        self.balance += amount
        self.history.append(amount)


class LedgerEnv:
    """Bring every account to the same balance with transfers written as JSON."""

    def __init__(self, max_turns=20, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        self.turn = 0
        self.accounts = {name: Account(name, random.randrange(0, 100, 5)) for name in ("ann", "bob", "cy", "dee")}
        return "Transfer money until all have the same.\n" + self._list(), {}

    def _list(self):
        return "\n".join(f"{account.owner:>4}: {account.balance:>4}" for account in self.accounts.values())

    def step(self, action):
        self.turn += 1
        late = self.turn >= self.max_turns
        try:
            order = json.loads(action)
            amount = int(order["amount"])
            self.accounts[order["from"]].move(-amount)
            self.accounts[order["to"]].move(amount)
        except (ValueError, KeyError, TypeError) as problem:
            return f"Refused: {problem}\n" + self._list(), 0.0, False, late, {}
        even = len({account.balance for account in self.accounts.values()}) == 1
        return self._list(), 1.0 if even else 0.0, even, late and not even, {}
