"""Answer in tags, small modulus."""
import random
import re


class ModEnv:
    def reset(self, seed=None):
        rng = random.Random(seed)
        self.a, self.b, self.m = rng.randint(2, 9), rng.randint(10, 40), rng.randint(5, 13)
        return f"What is {self.a}^{self.b} mod {self.m}? Write <answer>number</answer>.", {}

    def solution(self):
        return str(pow(self.a, self.b, self.m))

    def step(self, action):
        match = re.search(r"<answer>\s*(\d{1,6})\s*</answer>", action)
        return "done", float(match is not None and int(match.group(1)) == pow(self.a, self.b, self.m)), True, False, {}
