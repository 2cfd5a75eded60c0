"""Character codes to text."""
import random
import re


class TeletypeEnv:
    WORDS = ["BRIDGE", "CASTLE", "DONKEY", "ENGINE", "FLOWER", "GUITAR", "HAMMER"]

    def __init__(self, max_turns=2):
        self.max_turns = max_turns
        self.reset()

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turn = 0
        self.word = rng.choice(self.WORDS)
        codes = " ".join(f"{ord(c)}" for c in self.word)
        return f"Teletype no. {rng.randint(2, 9)} prints ASCII codes: {codes}. Which word is it? \\boxed{{WORD}}", {}

    def solution(self):
        return self.word

    def step(self, action):
        self.turn += 1
        m = re.search(r"\\boxed\{\s*([A-Za-z]+)\s*\}", action)
        ok = m is not None and m.group(1).upper() == self.word
        return ("STOP" if ok else "REPEAT"), float(ok), ok, not ok and self.turn >= self.max_turns, {}
