class TimetableEnv(TextEnv):
    def __init__(self, max_turns=1, **kwargs):
        super().__init__(max_turns, **kwargs)
        self.right = ""

    def reset(self, seed=None):
        super().reset(seed)
        start, minutes = self.rng.randint(6, 20), self.rng.randint(35, 170)
        self.right = str(minutes % 60)
        return f"A train leaves at {start}:00 and travels {minutes} minutes. How many minutes past the full hour does it arrive? Answer with \\boxed{{minutes}}.", {}

    def step(self, action):
        self.turn += 1
        reward = float(verify_answer(self.right, self.answer(action)))
        return ("Right." if reward else "Wrong."), reward, True, False, {}

    def solution(self):
        return self.right
