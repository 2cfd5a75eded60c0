"""Deduction with generated clues."""
import itertools
import random
import re


class OrderEnv:
    NAMES = ("Ann", "Ben", "Cat", "Dan")

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.order = rng.sample(self.NAMES, 4)
        clues = [f"{a} is somewhere before {b}." for a, b in itertools.combinations(self.order, 2)]
        rng.shuffle(clues)
        kept = list(clues)
        for clue in clues:
            fewer = [c for c in kept if c != clue]
            if self._count(fewer) == 1:
                kept = fewer
        return "Four people queue. " + " ".join(kept) + " Give the order: \\boxed{Name, Name, Name, Name}.", {}

    def _count(self, clues):
        pairs = [(clue.split()[0], clue.rstrip(".").split()[-1]) for clue in clues]
        return sum(
            all(p.index(a) < p.index(b) for a, b in pairs) for p in itertools.permutations(self.NAMES)
        )

    def solution(self):
        return ", ".join(self.order)

    def step(self, action):
        match = re.search(r"\\boxed\{([\w, ]{1,60})\}", action)
        ok = match is not None and [n.strip() for n in match.group(1).split(",")] == self.order
        return "done", float(ok), True, False, {}
