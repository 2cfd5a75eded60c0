# kind: breaks on an unknown word
# verdict: refuse
# probe: contract, malformed
import random


class AlchemyEnv(TextEnv):
    """Looks the word up in a dictionary and hopes."""

    VALUES = {"iron": 3, "gold": 7, "salt": 2, "lead": 5}

    def __init__(self, max_turns=6, **kwargs):
        super().__init__(max_turns)

    def reset(self, seed=None):
        super().reset(seed)
        pick = self.rng.choices(sorted(self.VALUES), k=3)
        self.plan, self.sum, self.goal = pick, 0, sum(self.VALUES[p] for p in pick)
        table = ", ".join(f"{k} is worth {v}" for k, v in self.VALUES.items())
        return f"{table}. Add metals, one per turn, until the kettle holds exactly {self.goal}: \\boxed{{metal}}", {}

    def solution(self):
        return list(self.plan)

    def step(self, action):
        self.turn += 1
        self.sum += self.VALUES[self.answer(action).lower()]
        if self.sum == self.goal:
            return "It glows.", 1.0, True, False, {}
        return f"The kettle holds {self.sum}.", 0.0, False, self.turn >= self.max_turns or self.sum > self.goal, {}
