class ParcelsEnv(TextEnv):
    def __init__(self, max_turns=1, **kwargs):
        super().__init__(max_turns, **kwargs)
        self.right = ""

    def reset(self, seed=None):
        super().reset(seed)
        weights = [self.rng.randint(2, 60) for _ in range(8)]
        limit = self.rng.randint(20, 40)
        self.right = str(sum(w >= limit for w in weights))
        return f"Parcels weigh {weights} kg. How many weigh {limit} kg or more? Answer with \\boxed{{number}}.", {}

    def step(self, action):
        self.turn += 1
        reward = float(verify_answer(self.right, self.answer(action)))
        return ("Right." if reward else "Wrong."), reward, True, False, {}

    def solution(self):
        return self.right
