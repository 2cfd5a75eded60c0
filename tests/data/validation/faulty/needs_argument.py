# kind: wrong signature
# verdict: refuse
# probe: contract
import random
class SizedEnv:
    def __init__(self, size):
        self.size = size
    def reset(self, seed=None):
        self.x = random.Random(seed).randint(1, self.size)
        return f"Double {self.x}.", {}
    def step(self, action):
        return "done", float(action == str(2 * self.x)), True, False, {}
