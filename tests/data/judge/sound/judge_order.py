class OrderEnv(TextEnv):
    def __init__(self, max_turns=1, **kwargs):
        super().__init__(max_turns, **kwargs)
        self.right = ""

    def reset(self, seed=None):
        super().reset(seed)
        numbers = self.rng.sample(range(10, 99), 6)
        self.right = str(','.join(map(str, sorted(numbers, reverse=True))))
        return f"Write these numbers in descending order, with commas: {', '.join(map(str, numbers))}. Answer with \\boxed{{list}}.", {}

    def step(self, action):
        self.turn += 1
        reward = float(verify_answer(self.right, self.answer(action)))
        return ("Right." if reward else "Wrong."), reward, True, False, {}

    def solution(self):
        return self.right
