# kind: hangs, catastrophic regular expression
# verdict: refuse
# probe: resources, malformed
import random, re
class RegexEnv:
    def reset(self, seed=None):
        self.x = random.Random(seed).randint(10, 9999)
        return f"Double {self.x}. Answer with \\boxed{{number}}.", {}
    def solution(self):
        return str(2 * self.x)
    def step(self, action):
        m = re.search(r"\\boxed\{((\d+)+)\}z?$", action) or re.search(r"(x+x+)+y", action)
        ok = m is not None and m.group(1) == str(2 * self.x)
        return "done", float(ok), True, False, {}
