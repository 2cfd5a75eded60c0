import random, re
class HaggleEnv:
    def __init__(self, max_turns=6): self.max_turns = max_turns
    def reset(self, seed=None):
        rng = random.Random(seed)
        self.limit = rng.randint(40, 90); self.ask = self.limit + rng.randint(20, 60); self.turn = 0
        self.start = self.ask
        return f"The seller asks {self.ask}. Offer with \\boxed{{number}}; paying less is better, no deal is worth nothing.", {}
    def solution(self): return str(self.limit)
    def step(self, action):
        self.turn += 1
        m = re.search(r"\\boxed\{(\d{1,4})\}", action)
        if not m: return "Say a number.", 0.0, False, self.turn >= self.max_turns, {}
        offer = int(m[1])
        if offer >= self.limit:
            return "Deal.", max(0.0, 1 - (offer - self.limit) / (self.start - self.limit)), True, False, {}
        gap = self.limit - offer
        return ("Far too little." if gap > 20 else "A bit more."), 0.0, self.turn >= self.max_turns, False, {}
