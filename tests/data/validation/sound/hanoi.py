import random, re
class HanoiEnv:
    def __init__(self, max_turns=40): self.max_turns = max_turns
    def reset(self, seed=None):
        rng = random.Random(seed)
        self.n = rng.randint(3, 4)
        self.names = rng.sample("ABCDEFG", 3)
        self.pegs = {self.names[0]: list(range(self.n, 0, -1)), self.names[1]: [], self.names[2]: []}
        self.turn = 0
        return f"Move the tower from {self.names[0]} to {self.names[2]}. {self.pegs}. Moves: \\boxed{{X Y}}.", {}
    def _plan(self, n, a, b, c):
        return [] if n == 0 else self._plan(n-1, a, c, b) + [f"{a} {c}"] + self._plan(n-1, b, a, c)
    def solution(self):
        return self._plan(self.n, *self.names) if self.turn == 0 else []
    def step(self, action):
        self.turn += 1
        late = self.turn >= self.max_turns
        m = re.search(r"\\boxed\{([A-G]) ([A-G])\}", action)
        if not m or m[1] not in self.pegs or m[2] not in self.pegs: return "Illegal", 0.0, False, late, {}
        a, b = self.pegs[m[1]], self.pegs[m[2]]
        if not a or (b and b[-1] < a[-1]): return f"Illegal. {self.pegs}", 0.0, False, late, {}
        b.append(a.pop())
        if len(self.pegs[self.names[2]]) == self.n: return "Done", 1.0, True, False, {}
        return f"{self.pegs}", 0.0, False, late, {}
