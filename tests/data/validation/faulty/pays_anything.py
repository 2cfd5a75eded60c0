# kind: reward for any action
# verdict: refuse
# probe: know_nothing
import random
class GenerousEnv:
    def reset(self, seed=None):
        self.x = random.Random(seed).randint(10, 9999)
        return f"Tell me something about the number {self.x}.", {}
    def step(self, action):
        return "Thank you!", 1.0, True, False, {}
