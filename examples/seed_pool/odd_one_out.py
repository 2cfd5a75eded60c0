import re

from spade_envs.contract import TextEnv


class OddOneOutEnv(TextEnv):
    """Find the animal among plants."""

    animals = ("badger", "camel", "donkey", "falcon", "giraffe", "hamster", "monkey", "rabbit", "tiger", "zebra")
    plants = ("oak", "pine", "rose", "tulip", "maple", "fern", "lily", "grass", "cactus", "ivy")
    words = animals + plants

    def reset(self, seed=None):
        super().reset(seed)
        listed = [*self.rng.sample(self.plants, 2), self.rng.choice(self.animals)]
        self.right = listed[2]
        self.rng.shuffle(listed)
        return f"Which of these is an animal: {', '.join(listed)}?", {}

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
