import random, re
class BlackjackEnv:
    def __init__(self, max_turns=10): self.max_turns = max_turns
    def reset(self, seed=None):
        self.rng = random.Random(seed)
        self.hand = [self.card(), self.card()]; self.dealer = [self.card()]; self.turn = 0
        return f"Hand {self.hand}, dealer {self.dealer}. \\boxed{{hit}} or \\boxed{{stand}}", {}
    def card(self): return min(10, self.rng.randint(1, 13))
    def step(self, action):
        self.turn += 1
        m = re.search(r"\\boxed\{(hit|stand)\}", action)
        if not m: return "hit or stand?", 0.0, False, self.turn >= self.max_turns, {}
        if m[1] == "hit":
            self.hand.append(self.card())
            if sum(self.hand) > 21: return "Bust", 0.0, True, False, {}
            return f"Hand {self.hand}", 0.0, False, self.turn >= self.max_turns, {}
        while sum(self.dealer) < 17: self.dealer.append(self.card())
        d, h = sum(self.dealer), sum(self.hand)
        return f"Dealer {self.dealer}", 1.0 if d > 21 or h > d else 0.5 if h == d else 0.0, True, False, {}
