"""Play reveals the answer: look into the box that the clue names, then say what lies there."""
import random
import re


class CratesEnv(TextEnv):
    COLOURS = ["red", "blue", "green", "white", "black"]

    def __init__(self, max_turns=6, **kwargs):
        super().__init__(max_turns)

    def reset(self, seed=None):
        super().reset(seed)
        self.inside = {c: self.rng.randint(100, 999) for c in self.COLOURS}
        self.pair = self.rng.sample(self.COLOURS, 2)
        return f"Five crates ({', '.join(self.COLOURS)}) hold one number each. Look with \\boxed{{open COLOUR}}. Then answer with the sum of the {self.pair[0]} and the {self.pair[1]} one: \\boxed{{sum}}.", {}

    def solution(self):
        return [f"open {self.pair[0]}", f"open {self.pair[1]}", str(sum(self.inside[c] for c in self.pair))]

    def step(self, action):
        self.turn += 1
        said = self.answer(action).lower()
        late = self.turn >= self.max_turns
        m = re.fullmatch(r"open (\w+)", said)
        if m and m.group(1) in self.inside:
            return f"The {m.group(1)} crate holds {self.inside[m.group(1)]}.", 0.0, False, late, {}
        if re.fullmatch(r"\d{1,6}", said):
            ok = int(said) == sum(self.inside[c] for c in self.pair)
            return ("Right." if ok else "Wrong."), float(ok), True, False, {}
        return "Open a crate or name a number.", 0.0, False, late, {}
