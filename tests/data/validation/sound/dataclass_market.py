"""Dataclasses, enums, type hints."""
import random
import re
from dataclasses import dataclass, field
from enum import Enum
from typing import Dict, List, Optional


class Kind(Enum):
    GRAIN = "grain"
    CLOTH = "cloth"
    SPICE = "spice"


@dataclass(order=True)
class Offer:
    price: int
    kind: Kind = field(compare=False)
    seller: str = field(compare=False, default="nobody")


@dataclass
class Market:
    offers: List[Offer] = field(default_factory=list)
    purse: int = 0

    def cheapest(self, kind: Kind) -> Optional[Offer]:
        return min((o for o in self.offers if o.kind is kind), default=None)


class MarketDayEnv:
    """Buy one of each kind as cheaply as possible; what is left?"""

    def __init__(self, max_turns: int = 3, **kwargs) -> None:
        self.max_turns = max_turns
        self.market = Market()
        self.turn = 0

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turn = 0
        sellers = rng.sample(["Abe", "Bix", "Cy", "Dot", "Eve", "Fay"], 6)
        kinds = [Kind.GRAIN, Kind.CLOTH, Kind.SPICE] * 2
        self.market = Market([Offer(rng.randint(5, 60), k, s) for k, s in zip(kinds, sellers)], rng.randint(200, 300))
        rows = "\n".join(f"{o.seller}: {o.kind.value} for {o.price}" for o in self.market.offers)
        return f"You have {self.market.purse} coins.\n{rows}\nBuy grain, cloth and spice as cheaply as you can. How many coins are left? \\boxed{{coins}}", {}

    def _left(self) -> int:
        return self.market.purse - sum(self.market.cheapest(kind).price for kind in Kind)

    def solution(self) -> str:
        return str(self._left())

    def step(self, action: str):
        self.turn += 1
        m = re.search(r"\\boxed\{\s*(\d{1,5})\s*\}", action)
        if m and int(m.group(1)) == self._left():
            return "Well traded.", 1.0, True, False, {}
        return "Count again.", 0.0, False, self.turn >= self.max_turns, {}
