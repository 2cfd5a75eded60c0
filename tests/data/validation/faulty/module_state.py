# kind: hidden global state, module variable
# verdict: refuse
# probe: independence
import random
STATE = {"x": 0, "turn": 0}
class ModuleStateEnv:
    def reset(self, seed=None):
        STATE["x"] = random.Random(seed).randint(10, 9999)
        STATE["turn"] = 0
        return f"Double {STATE['x']}. Answer with \\boxed{{number}}.", {}
    def solution(self):
        return str(2 * STATE["x"])
    def step(self, action):
        STATE["turn"] += 1
        ok = f"\\boxed{{{2 * STATE['x']}}}" in action
        return f"turn {STATE['turn']} of {STATE['x']}", float(ok), ok, STATE["turn"] >= 4, {}
