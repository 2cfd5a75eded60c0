"""The task is to find the acrostic."""
import random

LINES = {
    "a": "Above us only sky", "d": "Down by the river", "e": "Evening comes softly", "l": "Long are the shadows",
    "m": "Moonlight on water", "n": "No bird is singing", "o": "Over the meadows", "r": "Roses are fading",
    "s": "Snow on the mountain", "t": "Time is a traveller", "i": "Ice on the windows", "g": "Green is the valley",
}
NAMES = ["adrian", "martin", "leonard", "astrid", "roland", "simone", "arnold", "gerd", "merle", "astor", "leander", "tristan"]


class PoemEnv(TextEnv):
    def __init__(self, max_turns=3, **kwargs):
        super().__init__(max_turns)

    def reset(self, seed=None):
        super().reset(seed)
        self.name = self.rng.choice(NAMES)
        poem = "\n".join(LINES[c] for c in self.name)
        return f"{poem}\n\nThe first letters of the lines name the poet's friend. Who is it? \\boxed{{name}}", {}

    def solution(self):
        return self.name

    def step(self, action):
        self.turn += 1
        ok = self.answer(action).lower() == self.name
        return ("Yes." if ok else "No."), float(ok), ok, not ok and self.turn >= self.max_turns, {}
