"""The task is to decode: the encoded answer must be shown."""
import base64
import random
import re


class RadioBase64Env:
    SHIPS = ["aurora", "borealis", "calypso", "daphne", "electra", "fortuna", "galatea", "hermes"]
    CARGO = ["timber", "copper", "oranges", "cement", "machines", "barley"]

    def __init__(self, max_turns=3, **kwargs):
        self.max_turns = max_turns
        self.reset()

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turn = 0
        self.text = f"{rng.choice(self.SHIPS)} carries {rng.choice(self.CARGO)}"
        code = base64.b64encode(self.text.encode()).decode()
        return f"At {rng.randint(1, 12)} o'clock a station receives this in base64: {code}. Decode it. \\boxed{{text}}", {}

    def hint(self):
        return "Four characters of base64 stand for three bytes; answer in lower case within \\boxed{}."

    def solution(self):
        return f"\\boxed{{{self.text}}}"

    def step(self, action):
        self.turn += 1
        m = re.search(r"\\boxed\{([^{}]{1,80})\}", action)
        ok = m is not None and m.group(1).strip().lower() == self.text
        return ("Understood." if ok else "Garbled."), float(ok), ok, not ok and self.turn >= self.max_turns, {}
