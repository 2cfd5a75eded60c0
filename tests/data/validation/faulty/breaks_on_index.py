# kind: breaks on an index outside the list
# verdict: refuse
# probe: contract, malformed
import random
import re


class ShellGameEnv:
    """The cup's number is used as an index without a check."""

    def __init__(self, max_turns=3, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turn = 0
        self.cups = [0, 0, 0, 0]
        pea = rng.randrange(4)
        self.cups[pea] = 1
        swaps = []
        for _ in range(4):
            a, b = rng.sample(range(4), 2)
            self.cups[a], self.cups[b] = self.cups[b], self.cups[a]
            swaps.append(f"{a + 1} with {b + 1}")
        return f"A pea lies under cup {pea + 1} of 4. Swapped: {', '.join(swaps)}. Under which cup is it now? \\boxed{{cup}}", {}

    def solution(self):
        return str(self.cups.index(1) + 1)

    def step(self, action):
        self.turn += 1
        m = re.search(r"\\boxed\{\s*(\d{1,3})\s*\}", action)
        if not m:
            return "Which cup?", 0.0, False, self.turn >= self.max_turns, {}
        won = self.cups[int(m.group(1)) - 1] == 1
        return ("The pea!" if won else "Empty."), float(won), True, False, {}
