class ReadingsEnv(TextEnv):
    def __init__(self, max_turns=1, **kwargs):
        super().__init__(max_turns, **kwargs)
        self.right = ""

    def reset(self, seed=None):
        super().reset(seed)
        marks = [self.rng.randint(10, 99) for _ in range(7)]
        self.right = str(max(marks) - min(marks))
        return f"Readings: {marks}. What is the difference between the highest and the lowest? Answer with \\boxed{{number}}.", {}

    def step(self, action):
        self.turn += 1
        reward = float(verify_answer(self.right, self.answer(action)))
        return ("Right." if reward else "Wrong."), reward, True, False, {}

    def solution(self):
        return self.right
