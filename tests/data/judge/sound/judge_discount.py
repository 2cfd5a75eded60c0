class DiscountEnv(TextEnv):
    def __init__(self, max_turns=1, **kwargs):
        super().__init__(max_turns, **kwargs)
        self.right = ""

    def reset(self, seed=None):
        super().reset(seed)
        price, off = 20 * self.rng.randint(4, 60), self.rng.choice([5, 10, 15, 20, 25])
        self.right = str(price * (100 - off) // 100)
        return f"A coat costs {price} coins and is sold {off} percent cheaper. What does it cost now? Answer with \\boxed{{coins}}.", {}

    def step(self, action):
        self.turn += 1
        reward = float(verify_answer(self.right, self.answer(action)))
        return ("Right." if reward else "Wrong."), reward, True, False, {}

    def solution(self):
        return self.right
