"""Maze with walls; a list of moves as solution."""
import random
import re
from collections import deque


class GridWalkEnv:
    MOVES = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}

    def __init__(self, max_turns=30, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        rng = random.Random(seed)
        while True:
            self.walls = {(r, c) for r in range(6) for c in range(6) if rng.random() < 0.3} - {(0, 0), (5, 5)}
            self.at, self.turn = (0, 0), 0
            if self._plan() is not None:
                break
        rows = ["".join("#" if (r, c) in self.walls else "." for c in range(6)) for r in range(6)]
        return "Go from the top left to the bottom right, # is a wall.\n" + "\n".join(rows) + (
            "\nMove with \\boxed{up}, \\boxed{down}, \\boxed{left} or \\boxed{right}."
        ), {}

    def _plan(self):
        queue, seen = deque([(self.at, [])]), {self.at}
        while queue:
            (r, c), path = queue.popleft()
            if (r, c) == (5, 5):
                return path
            for name, (dr, dc) in self.MOVES.items():
                cell = (r + dr, c + dc)
                if 0 <= cell[0] < 6 and 0 <= cell[1] < 6 and cell not in self.walls and cell not in seen:
                    seen.add(cell)
                    queue.append((cell, [*path, name]))
        return None

    def solution(self):
        return self._plan()

    def step(self, action):
        self.turn += 1
        late = self.turn >= self.max_turns
        match = re.search(r"\\boxed\{(up|down|left|right)\}", action)
        if match is None:
            return "Say a direction.", 0.0, False, late, {}
        dr, dc = self.MOVES[match.group(1)]
        cell = (self.at[0] + dr, self.at[1] + dc)
        if not (0 <= cell[0] < 6 and 0 <= cell[1] < 6) or cell in self.walls:
            return f"A wall. You are at {self.at}.", 0.0, False, late, {}
        self.at = cell
        if cell == (5, 5):
            return "You are out.", 1.0, True, False, {}
        return f"You are at {self.at}.", 0.0, False, late, {}
