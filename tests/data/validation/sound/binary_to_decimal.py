import random


class BinaryClockEnv(TextEnv):
    """Reads a binary clock; the observation necessarily holds the answer in base two."""

    def reset(self, seed=None):
        super().reset(seed)
        self.value = self.rng.randint(64, 4095)
        place = self.rng.choice(["station", "airport", "museum", "school"])
        return f"The clock in the {place} is read in binary: {self.value:b}. Which decimal number is that? \\boxed{{number}}", {}

    def solution(self):
        return str(self.value)

    def step(self, action):
        ok = self.answer(action) == str(self.value)
        return ("Yes." if ok else "No."), float(ok), True, False, {}
