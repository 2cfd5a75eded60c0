"""Nested classes, closures, properties and class methods, as models like to write them."""
import random
import re
from collections import namedtuple
from functools import reduce

Edge = namedtuple("Edge", "a b cost")


class Network:
    def __init__(self, edges):
        self.edges = tuple(edges)

    @property
    def nodes(self):
        return sorted({e.a for e in self.edges} | {e.b for e in self.edges})

    @classmethod
    def draw(cls, rng, size=5):
        names = "PQRSTUV"[:size]
        chain = [Edge(names[i], names[rng.randrange(i)], rng.randint(2, 20)) for i in range(1, size)]
        extra = [Edge(*rng.sample(names, 2), rng.randint(2, 20)) for _ in range(4)]
        return cls(chain + extra)

    def tree_cost(self):
        parent = {n: n for n in self.nodes}

        def root(n):
            while parent[n] != n:
                n = parent[n]
            return n

        total = 0
        for edge in sorted(self.edges, key=lambda e: e.cost):
            ra, rb = root(edge.a), root(edge.b)
            if ra != rb:
                parent[ra] = rb
                total += edge.cost
        return total


class CableEnv(TextEnv):
    """Cheapest network that joins all villages."""

    def __init__(self, max_turns=3, **kwargs):
        super().__init__(max_turns)

    def reset(self, seed=None):
        super().reset(seed)
        self.network = Network.draw(self.rng, self.rng.randint(5, 7))
        listing = reduce(lambda text, e: text + f"\n{e.a}-{e.b}: {e.cost}", self.network.edges, "Possible cables and their costs:")
        return f"{listing}\nWhat is the smallest cost at which all villages are joined? \\boxed{{cost}}", {}

    def solution(self):
        return str(self.network.tree_cost())

    def step(self, action):
        self.turn += 1
        ok = self.answer(action) == self.solution()
        return ("Yes." if ok else "No."), float(ok), ok, not ok and self.turn >= self.max_turns, {}
