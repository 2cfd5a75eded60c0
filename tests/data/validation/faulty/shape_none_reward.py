# kind: wrong return shape, None as reward
# verdict: refuse
# probe: contract
import random


class TriviaMathEnv(TextEnv):
    """The helper forgets to return on the losing path."""

    def reset(self, seed=None):
        super().reset(seed)
        self.base, self.exp = self.rng.randint(2, 9), self.rng.randint(3, 6)
        return f"What is {self.base} to the power of {self.exp}? \\boxed{{value}}", {}

    def solution(self):
        return str(self.base**self.exp)

    def _score(self, said):
        if said == str(self.base**self.exp):
            return 1.0

    def step(self, action):
        return "Done.", self._score(self.answer(action)), True, False, {}
