"""Hidden mines; the solution is a list of safe cells."""
import random
import re


class SweeperEnv:
    SIZE, MINES = 4, 3

    def __init__(self, max_turns=16, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        rng = random.Random(seed)
        cells = [(r, c) for r in range(self.SIZE) for c in range(self.SIZE)]
        self.mines = set(rng.sample(cells, self.MINES))
        self.open = set()
        self.turn = 0
        return self._show() + "\nOpen a cell with \\boxed{row,column}.", {}

    def _near(self, r, c):
        return sum((r + i, c + j) in self.mines for i in (-1, 0, 1) for j in (-1, 0, 1))

    def _show(self):
        return "\n".join(
            "".join(str(self._near(r, c)) if (r, c) in self.open else "#" for c in range(self.SIZE))
            for r in range(self.SIZE)
        )

    def solution(self):
        cells = [(r, c) for r in range(self.SIZE) for c in range(self.SIZE)]
        return [f"{r},{c}" for r, c in cells if (r, c) not in self.mines and (r, c) not in self.open]

    def step(self, action):
        self.turn += 1
        late = self.turn >= self.max_turns
        match = re.search(r"\\boxed\{([0-3]),([0-3])\}", action)
        if match is None:
            return "Format: \\boxed{row,column}", 0.0, False, late, {}
        cell = (int(match.group(1)), int(match.group(2)))
        if cell in self.mines:
            return "Boom.", 0.0, True, False, {}
        self.open.add(cell)
        if len(self.open) == self.SIZE**2 - self.MINES:
            return "Cleared.", 1.0, True, False, {}
        return self._show(), 0.0, False, late, {}
