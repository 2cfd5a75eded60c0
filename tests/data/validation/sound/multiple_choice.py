"""Four options, so a guess wins a quarter."""
import random
import re


class CapitalsEnv:
    FACTS = {"Peru": "Lima", "Kenya": "Nairobi", "Norway": "Oslo", "Japan": "Tokyo", "Chad": "N'Djamena", "Fiji": "Suva",
             "Cuba": "Havana", "Iran": "Tehran", "Oman": "Muscat", "Laos": "Vientiane"}

    def reset(self, seed=None):
        rng = random.Random(seed)
        country, *others = rng.sample(sorted(self.FACTS), 4)
        options = [self.FACTS[name] for name in (country, *others)]
        rng.shuffle(options)
        self.letter = "ABCD"[options.index(self.FACTS[country])]
        lines = "\n".join(f"{letter}) {option}" for letter, option in zip("ABCD", options))
        return f"What is the capital of {country}?\n{lines}\nAnswer with the letter in \\boxed{{}}.", {}

    def solution(self):
        return self.letter

    def step(self, action):
        match = re.search(r"\\boxed\{\s*([A-D])\s*\}", action)
        return "done", float(match is not None and match.group(1) == self.letter), True, False, {}
