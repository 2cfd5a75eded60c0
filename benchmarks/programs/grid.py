import random


class GridEnv:
    """Walk from one corner of a grid with walls to the other."""

    MOVES = (("north", -1, 0), ("south", 1, 0), ("west", 0, -1), ("east", 0, 1))

    def __init__(self, max_turns=20, size=7, **kwargs):
        self.max_turns, self.size = max_turns, size

    def reset(self, seed=None):
        self.turn = 0
        self.place = (0, 0)
        cells = [(row, column) for row in range(self.size) for column in range(self.size)]
        self.walls = set(random.sample(cells[1:-1], self.size))
        return "Find the exit: north, south, west, east.\n" + self._draw(), {}

    def _draw(self):
        rows = []
        for row in range(self.size):
            line = ""
            for column in range(self.size):
                cell = (row, column)
                line += "@" if cell == self.place else "#" if cell in self.walls else "."
            rows.append(line)
        return "\n".join(rows)

    def step(self, action):
        self.turn += 1
        done = False
        for name, down, right in self.MOVES:
            if name in action:
                row, column = self.place[0] + down, self.place[1] + right
                if 0 <= row < self.size and 0 <= column < self.size and (row, column) not in self.walls:
                    self.place = (row, column)
                done = self.place == (self.size - 1, self.size - 1)
        return self._draw(), 1.0 if done else 0.0, done, self.turn >= self.max_turns and not done, {}
