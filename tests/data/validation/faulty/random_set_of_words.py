# kind: non-determinism, order of a set of texts
# verdict: admitted
# probe: determinism
# needs: nothing: the sandbox fixes how texts are hashed, in every process
import random
import re


class MenuEnv:
    """The dishes come out of a set of strings; their order is part of the question."""

    DISHES = ["soup", "salad", "trout", "risotto", "gnocchi", "tart", "sorbet", "cheese"]

    def __init__(self, max_turns=2, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turn = 0
        menu = set(rng.sample(self.DISHES, 5))
        self.order = [dish for dish in menu]
        self.wanted = rng.randint(2, 4)
        return f"Today's courses in order: {', '.join(self.order)}. Spell course number {self.wanted} backwards: \\boxed{{text}}", {}

    def solution(self):
        return self.order[self.wanted - 1][::-1]

    def step(self, action):
        self.turn += 1
        m = re.search(r"\\boxed\{([a-z]+)\}", action)
        ok = m is not None and m.group(1) == self.solution()
        return ("Served." if ok else "Sent back."), float(ok), ok, not ok and self.turn >= self.max_turns, {}
