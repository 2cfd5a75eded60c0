# kind: seed ignored but for decoration
# verdict: refuse
# probe: know_nothing
import random
import re


class HarbourEnv(TextEnv):
    """Names change, the numbers do not."""

    def __init__(self, max_turns=2, **kwargs):
        super().__init__(max_turns)

    def reset(self, seed=None):
        super().reset(seed)
        ship = self.rng.choice(["Aurora", "Bonny", "Calypso", "Dolphin", "Esther", "Fram"])
        captain = self.rng.choice(["Hale", "Ivers", "Jonas", "Kerr", "Lund"])
        self.tons = 18 * 7 + 45
        return (
            f"Captain {captain} of the {ship} loads 18 crates of 7 tons and 45 tons of coal. How heavy is the cargo? "
            "\\boxed{tons}"
        ), {}

    def hint(self):
        return "Multiply crates by tons for each crate, then add the coal. Answer in \\boxed{}."

    def solution(self):
        return str(self.tons)

    def step(self, action):
        self.turn += 1
        ok = self.answer(action) == str(self.tons)
        return ("Aye." if ok else "Nay."), float(ok), ok, not ok and self.turn >= self.max_turns, {}
