import re

from spade_envs.contract import TextEnv


class CapitalEnv(TextEnv):
    """Name the capital of a country."""

    capitals = (
        *(("France", "paris"), ("Italy", "rome"), ("Spain", "madrid"), ("Germany", "berlin"), ("Japan", "tokyo")),
        *(
            ("Egypt", "cairo"),
            ("Greece", "athens"),
            ("Russia", "moscow"),
            ("Portugal", "lisbon"),
            ("Austria", "vienna"),
        ),
        *(("Norway", "oslo"), ("Ireland", "dublin"), ("Poland", "warsaw"), ("Kenya", "nairobi"), ("Cuba", "havana")),
    )
    words = tuple(name for _, name in capitals)

    def reset(self, seed=None):
        super().reset(seed)
        country, self.right = self.rng.choice(self.capitals)
        return f"What is the capital of {country}?", {}

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
