# kind: breaks on format fields in an action
# verdict: refuse
# probe: malformed
import random, re
class EchoFormatEnv:
    def reset(self, seed=None):
        self.x = random.Random(seed).randint(1, 1000)
        return f"Triple {self.x}. Answer with \\boxed{{number}}.", {}
    def solution(self):
        return str(3 * self.x)
    def step(self, action):
        m = re.search(r"\\boxed\{(-?\d+)\}", action)
        if m is None and "nan" in action:
            raise ValueError("not a number")
        ok = m is not None and int(m.group(1)[:20]) == 3 * self.x
        return "done", float(ok), True, False, {}
