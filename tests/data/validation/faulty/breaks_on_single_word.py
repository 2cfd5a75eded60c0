# kind: breaks on an action of one word
# verdict: refuse
# probe: contract, malformed
import random


class RobotArmEnv(TextEnv):
    """verb, noun = action.split()"""

    def __init__(self, max_turns=8, **kwargs):
        super().__init__(max_turns)

    def reset(self, seed=None):
        super().reset(seed)
        self.parts = self.rng.sample(["bolt", "washer", "nut", "spring", "clip"], 3)
        self.done = []
        return f"Mount in this order: {', '.join(reversed(self.parts))}, the last named first. Say \\boxed{{mount PART}}.", {}

    def solution(self):
        return [f"mount {part}" for part in self.parts[len(self.done) :]]

    def step(self, action):
        self.turn += 1
        verb, part = self.answer(action).split(" ", 1)
        if verb == "mount" and len(self.done) < 3 and part == self.parts[len(self.done)]:
            self.done.append(part)
        if len(self.done) == 3:
            return "Assembled.", 1.0, True, False, {}
        return f"Mounted: {self.done}", 0.0, False, self.turn >= self.max_turns, {}
