import random, re
class TicTacToeEnv:
    LINES = [(0,1,2),(3,4,5),(6,7,8),(0,3,6),(1,4,7),(2,5,8),(0,4,8),(2,4,6)]
    def __init__(self, max_turns=9): self.max_turns = max_turns
    def reset(self, seed=None):
        self.rng = random.Random(seed)
        self.b = [" "] * 9
        self.b[self.rng.randrange(9)] = "O"
        self.turn = 0
        return self.show(), {}
    def show(self):
        free = [str(i) for i in range(9) if self.b[i] == " "]
        return "Board:\n" + "\n".join("|".join(self.b[i:i+3]) for i in (0,3,6)) + f"\nYou are X. Choose one of {', '.join(free)} in \\boxed{{}}."
    def won(self, p): return any(all(self.b[i] == p for i in l) for l in self.LINES)
    def step(self, action):
        self.turn += 1
        m = re.search(r"\\boxed\{(\d)\}", action)
        if not m or int(m[1]) > 8 or self.b[int(m[1])] != " ":
            return "Illegal.\n" + self.show(), 0.0, False, self.turn >= self.max_turns, {}
        self.b[int(m[1])] = "X"
        if self.won("X"): return "Won", 1.0, True, False, {}
        free = [i for i in range(9) if self.b[i] == " "]
        if not free: return "Draw", 0.5, True, False, {}
        self.b[self.rng.choice(free)] = "O"
        if self.won("O"): return "Lost", 0.0, True, False, {}
        if " " not in self.b: return "Draw", 0.5, True, False, {}
        return self.show(), 0.0, False, self.turn >= self.max_turns, {}
