# kind: does not load
# verdict: refuse
# probe: policy, load
class BrokenEnv:
    def reset(self, seed=None)
        return "hello", {}
    def step(self, action):
        return "bye", 0.0, True, False, {}
