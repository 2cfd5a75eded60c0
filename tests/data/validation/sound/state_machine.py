"""A vending machine with states; several ways to win."""
import random
import re
from enum import Enum


class State(Enum):
    IDLE = "idle"
    PAID = "paid"
    CHOSEN = "chosen"


class VendingEnv:
    PRICES = {"tea": 3, "soup": 5, "cocoa": 4, "juice": 6, "water": 2}

    def __init__(self, max_turns=12, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.want = rng.choice(sorted(self.PRICES))
        self.prices = {name: price + rng.randint(0, 4) for name, price in self.PRICES.items()}
        self.state, self.coins, self.turn = State.IDLE, 0, 0
        listing = ", ".join(f"{name} costs {price}" for name, price in self.prices.items())
        return (
            f"Buy {self.want} with the exact price. {listing}. "
            "Use \\boxed{insert N}, \\boxed{choose NAME}, \\boxed{confirm}."
        ), {}

    def solution(self):
        return [f"insert {self.prices[self.want]}", f"choose {self.want}", "confirm"]

    def step(self, action):
        self.turn += 1
        late = self.turn >= self.max_turns
        match = re.search(r"\\boxed\{(insert \d{1,3}|choose \w+|confirm)\}", action)
        if match is None:
            return "The machine hums.", 0.0, False, late, {}
        verb, _, rest = match.group(1).partition(" ")
        if verb == "insert" and self.state is State.IDLE:
            self.coins, self.state = int(rest), State.PAID
        elif verb == "choose" and self.state is State.PAID and rest in self.prices:
            self.choice, self.state = rest, State.CHOSEN
        elif verb == "confirm" and self.state is State.CHOSEN:
            ok = self.choice == self.want and self.coins == self.prices[self.choice]
            return ("Enjoy." if ok else "It swallows the coins."), float(ok), True, False, {}
        else:
            return f"Not now (state: {self.state.value}).", 0.0, False, late, {}
        return f"State: {self.state.value}.", 0.0, False, late, {}
