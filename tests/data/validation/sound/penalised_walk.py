"""A small penalty for each step, as in grid worlds; the return is the terminating step's reward alone."""
import random
import re


class IcePathEnv:
    STEPS = {"n": (0, -1), "s": (0, 1), "e": (1, 0), "w": (-1, 0)}

    def __init__(self, max_turns=18, **kwargs):
        self.max_turns = max_turns
        self.reset()

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turn, self.at = 0, (rng.randint(0, 4), 4)
        self.thin = set(rng.sample([(x, y) for x in range(5) for y in (1, 3)], 3))
        self.goal = (rng.randint(0, 4), 0)
        rows = "\n".join("".join("o" if (x, y) in self.thin else "G" if (x, y) == self.goal else "S" if (x, y) == self.at else "." for x in range(5)) for y in range(5))
        return f"{rows}\nYou are S, reach G, the holes o are deadly. Each turn: \\boxed{{n}}, \\boxed{{s}}, \\boxed{{e}} or \\boxed{{w}}; the top is north.", {}

    def solution(self):
        queue, seen = [(self.at, [])], {self.at}
        for at, path in queue:
            if at == self.goal:
                return path
            for name, (dx, dy) in self.STEPS.items():
                to = (at[0] + dx, at[1] + dy)
                if 0 <= to[0] < 5 and 0 <= to[1] < 5 and to not in self.thin and to not in seen:
                    seen.add(to)
                    queue.append((to, [*path, name]))
        return []

    def step(self, action):
        self.turn += 1
        late = self.turn >= self.max_turns
        m = re.search(r"\\boxed\{\s*([nsew])\s*\}", action)
        if not m:
            return "n, s, e or w?", -0.05, False, late, {}
        dx, dy = self.STEPS[m.group(1)]
        self.at = (min(4, max(0, self.at[0] + dx)), min(4, max(0, self.at[1] + dy)))
        if self.at in self.thin:
            return "You fall through the ice.", 0.0, True, False, {}
        if self.at == self.goal:
            return "Safe ashore.", 1.0, True, False, {}
        return f"You stand at column {self.at[0] + 1}, row {self.at[1] + 1}.", -0.01, False, late, {}
