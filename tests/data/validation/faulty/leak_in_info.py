# kind: leak, info dictionary
# verdict: warn
# probe: leak
import random
import re


class PolygonAreaEnv:
    """Area of a right-angled polygon from its outline."""

    def __init__(self, max_turns=3, **kwargs):
        self.max_turns = max_turns
        self.reset()

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turn = 0
        self.w, self.h = rng.randint(9, 30), rng.randint(9, 30)
        self.cw, self.ch = rng.randint(2, self.w - 2), rng.randint(2, self.h - 2)
        self.area = self.w * self.h - self.cw * self.ch
        outline = [(0, 0), (self.w, 0), (self.w, self.h - self.ch), (self.w - self.cw, self.h - self.ch),
                   (self.w - self.cw, self.h), (0, self.h)]
        text = " -> ".join(f"({x},{y})" for x, y in outline)
        return f"A garden has the corners {text}. What is its area? \\boxed{{area}}", {"answer": self.area}

    def solution(self):
        return str(self.area)

    def step(self, action):
        self.turn += 1
        m = re.search(r"\\boxed\{\s*(\d{1,6})\s*\}", action)
        if m and int(m.group(1)) == self.area:
            return "Correct area.", 1.0, True, False, {"answer": self.area}
        return "That is not the area.", 0.0, False, self.turn >= self.max_turns, {"answer": self.area}
