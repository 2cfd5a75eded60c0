# kind: does not load
# verdict: refuse
# probe: load
TABLE = {"a": 1}
START = TABLE["b"]
class LookupEnv:
    def reset(self, seed=None):
        return f"start {START}", {}
    def step(self, action):
        return "done", 0.0, True, False, {}
