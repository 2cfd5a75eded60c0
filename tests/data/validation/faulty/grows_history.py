# kind: observation grows without bound
# verdict: warn
# probe: observation
import random
import re


class ChronicleEnv(TextEnv):
    """Each turn repeats the whole history, with a long preamble for each entry."""

    PREAMBLE = "And it came to pass, as the elders tell it and the scribes have written it down in the great book, that "

    def __init__(self, max_turns=60, **kwargs):
        super().__init__(max_turns)

    def reset(self, seed=None):
        super().reset(seed)
        self.a, self.b = self.rng.randint(200, 999), self.rng.randint(200, 999)
        self.history = [f"the king asked for the sum of {self.a} and {self.b}, in \\boxed{{}}"]
        return self._text(), {}

    def _text(self):
        return "\n".join(self.PREAMBLE + entry + "." for entry in self.history)

    def solution(self):
        return str(self.a + self.b)

    def step(self, action):
        self.turn += 1
        if self.answer(action) == str(self.a + self.b):
            return "The king was content.", 1.0, True, False, {}
        self.history.append(f"someone answered {action[:80]!r} and the king was not content")
        return self._text(), 0.0, False, self.turn >= self.max_turns, {}
