# kind: wrong return shape, None for info
# verdict: refuse
# probe: contract
import random


class MorseEnv(TextEnv):
    CODE = {"a": ".-", "d": "-..", "e": ".", "i": "..", "k": "-.-", "m": "--", "n": "-.", "o": "---", "s": "...", "t": "-"}
    WORDS = ["mist", "demo", "kind", "snake", "stone", "taken", "medias", "token"]

    def reset(self, seed=None):
        super().reset(seed)
        self.word = self.rng.choice(self.WORDS)
        code = " ".join(self.CODE[c] for c in self.word)
        table = ", ".join(f"{k} {v}" for k, v in self.CODE.items())
        return f"Morse: {table}. Decode {code}. \\boxed{{word}}", {}

    def solution(self):
        return self.word

    def step(self, action):
        ok = self.answer(action).lower() == self.word
        return ("over" if ok else "repeat"), float(ok), True, False, None
