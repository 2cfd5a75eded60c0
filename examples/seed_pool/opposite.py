import re

from spade_envs.contract import TextEnv


class OppositeEnv(TextEnv):
    """Give the opposite of a word."""

    pairs = (
        ("hot", "cold"),
        ("big", "small"),
        ("high", "low"),
        ("day", "night"),
        ("happy", "sad"),
        ("fast", "slow"),
        ("young", "old"),
        ("open", "closed"),
        ("early", "late"),
        ("full", "empty"),
        ("wet", "dry"),
        ("hard", "soft"),
    )
    words = tuple(word for pair in pairs for word in pair)

    def reset(self, seed=None):
        super().reset(seed)
        word, self.right = self.rng.choice(self.pairs)
        return f"What is the opposite of {word}?", {}

    def step(self, action):
        """The last of the known words in the reply is the answer."""
        self.turn += 1
        said = [word for word in re.findall(r"[a-z]+", action.lower()) if word in self.words]
        right = bool(said) and said[-1] == self.right
        return "Right." if right else "Wrong.", float(right), True, False, {}

    def hint(self):
        return f"The answer is {self.right}."

    def solution(self):
        return self.right
