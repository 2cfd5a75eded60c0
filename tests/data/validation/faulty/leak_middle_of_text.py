# kind: leak, plain, unlabelled in the middle
# verdict: warn
# probe: leak
import random
import re


class CisternEnv:
    """Two pipes fill a cistern. The drawing's number in the middle of the text is the answer."""

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.a, self.b = rng.randint(12, 45), rng.randint(12, 45)
        self.hours = rng.randint(13, 60)
        self.litres = (self.a + self.b) * self.hours
        return (
            f"Two pipes fill a cistern (drawing {self.a * 3}-{self.litres}-{self.b}). The first one brings {self.a} litres "
            f"an hour, the second one {self.b}. Both run for {self.hours} hours. How many litres have come in? "
            "\\boxed{litres}"
        ).replace("-", " "), {}

    def solution(self):
        return str(self.litres)

    def step(self, action):
        m = re.search(r"\\boxed\{\s*(\d{1,7})\s*\}", action)
        ok = m is not None and int(m.group(1)) == self.litres
        return ("full" if ok else "spilt"), float(ok), True, False, {}
