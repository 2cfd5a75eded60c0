import random, re
class NimEnv:
    def __init__(self, max_turns=20, **kw):
        self.max_turns = max_turns
        self.reset()
    def reset(self, seed=None):
        self.rng = random.Random(seed)
        while True:
            self.heaps = [self.rng.randint(1, 7) for _ in range(3)]
            if self.heaps[0] ^ self.heaps[1] ^ self.heaps[2]:
                break
        self.turn = 0
        return f"Nim. Heaps: {self.heaps}. Whoever takes the last stone wins. Move with \\boxed{{heap,count}} (heaps 1-3).", {}
    def _best(self):
        x = self.heaps[0] ^ self.heaps[1] ^ self.heaps[2]
        for i, h in enumerate(self.heaps):
            if h ^ x < h:
                return i, h - (h ^ x)
        i = max(range(3), key=lambda j: self.heaps[j])
        return i, 1
    def solution(self):
        i, n = self._best()
        return f"{i+1},{n}"
    def step(self, action):
        self.turn += 1
        late = self.turn >= self.max_turns
        m = re.search(r"\\boxed\{([1-3]),(\d{1,2})\}", action)
        if not m:
            return "Format.", 0.0, False, late, {}
        i, n = int(m[1]) - 1, int(m[2])
        if not 1 <= n <= self.heaps[i]:
            return "Illegal move.", 0.0, False, late, {}
        self.heaps[i] -= n
        if sum(self.heaps) == 0:
            return "You win.", 1.0, True, False, {}
        i, n = self._best()
        self.heaps[i] -= n
        if sum(self.heaps) == 0:
            return "You lose.", 0.0, True, False, {}
        return f"Heaps: {self.heaps}", 0.0, False, late, {}
