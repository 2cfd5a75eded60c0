# kind: seed ignored
# verdict: refuse
# probe: seeds
import re
class OneRiddleEnv:
    def reset(self, seed=None):
        return "What is the smallest prime above 90? Answer with \\boxed{number}.", {}
    def solution(self):
        return "97"
    def step(self, action):
        ok = re.search(r"\\boxed\{97\}", action) is not None
        return "done", float(ok), True, False, {}
