# kind: leak, plain, last number of the text
# verdict: refuse
# probe: know_nothing, leak
import random
class CopyEnv:
    def reset(self, seed=None):
        rng = random.Random(seed)
        self.items = [rng.randint(10, 99) for _ in range(5)]
        return f"Items {self.items[:-1]} and at the end {self.items[-1]}", {}
    def solution(self):
        return str(self.items[-1])
    def step(self, action):
        ok = action.strip() == str(self.items[-1])
        return "done", float(ok), True, False, {}
