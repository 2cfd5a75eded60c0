"""Small shaping rewards on the way, full pay at the end, nothing negative."""
import random
import re


class TowerEnv:
    def __init__(self, max_turns=12, **kwargs):
        self.max_turns = max_turns

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.goal = rng.sample("ABCDE", 4)
        self.tower, self.turn = [], 0
        return f"Stack the blocks {' on '.join(reversed(self.goal))}. One per turn: \\boxed{{put X}}.", {}

    def solution(self):
        return [f"put {block}" for block in self.goal[len(self.tower):]]

    def step(self, action):
        self.turn += 1
        late = self.turn >= self.max_turns
        match = re.search(r"\\boxed\{put ([A-E])\}", action)
        if match is None:
            return "Nothing moved.", 0.0, False, late, {}
        if match.group(1) != self.goal[len(self.tower)]:
            return "The tower falls.", 0.0, True, False, {}
        self.tower.append(match.group(1))
        if self.tower == self.goal:
            return "Done.", 1.0, True, False, {}
        return f"Tower: {self.tower}", 0.1, False, late, {}
