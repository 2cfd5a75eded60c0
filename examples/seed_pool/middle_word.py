import re

from spade_envs.contract import TextEnv


class MiddleWordEnv(TextEnv):
    """Say the middle word of a list."""

    words = ("badger", "camel", "donkey", "falcon", "giraffe", "hamster", "monkey", "rabbit", "tiger", "zebra")

    def reset(self, seed=None):
        super().reset(seed)
        listed = self.rng.sample(self.words, 3)
        self.right = listed[1]
        return f"Here is a list: {', '.join(listed)}. Which word is the middle one?", {}

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
