# kind: reward for any action, for staying to the end
# verdict: refuse
# probe: know_nothing
import random
import re


class NightWatchEnv:
    """Guard a camp for five nights. Whatever is done, the last night pays."""

    def __init__(self, max_turns=5, **kwargs):
        self.max_turns = max_turns
        self.reset()

    def reset(self, seed=None):
        self.rng = random.Random(seed)
        self.turn, self.fire = 0, self.rng.randint(3, 6)
        return self._scene(), {}

    def _scene(self):
        return f"Night {self.turn + 1}. The fire has {self.fire} logs. You hear {self.rng.choice(['wolves', 'wind', 'steps'])}. \\boxed{{watch}} or \\boxed{{sleep}}?"

    def solution(self):
        return ["watch"] * (self.max_turns - self.turn)

    def step(self, action):
        self.turn += 1
        m = re.search(r"\\boxed\{(watch|sleep)\}", action)
        if m and m.group(1) == "sleep":
            self.fire -= 1
        if self.turn >= self.max_turns:
            return "Dawn of the last day. The camp stands.", 1.0, True, False, {}
        return self._scene(), 0.0, False, False, {}
