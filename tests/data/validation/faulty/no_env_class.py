# kind: does not load
# verdict: refuse
# probe: load
import random
class AdditionGame:
    def reset(self, seed=None):
        return "2+2=?", {}
    def step(self, action):
        return "", 0.0, True, False, {}
