# kind: seed ignored
# verdict: refuse
# probe: seeds
class OneRiddleEnv:
    def reset(self, seed=None):
        return "What is the smallest prime above 90? Answer with \\boxed{number}.", {}
    def step(self, action):
        return "done", 1.0 if "\\boxed{97}" in action else 0.0, True, False, {}
