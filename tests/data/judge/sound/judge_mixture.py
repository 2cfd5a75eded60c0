class MixtureEnv(TextEnv):
    def __init__(self, max_turns=1, **kwargs):
        super().__init__(max_turns, **kwargs)
        self.right = ""

    def reset(self, seed=None):
        super().reset(seed)
        red, blue = self.rng.randint(3, 30), self.rng.randint(3, 30)
        self.right = str(3 * red)
        return f"A paint takes {red} cups of red and {blue} cups of blue. How many cups of red go into three such mixtures? Answer with \\boxed{{cups}}.", {}

    def step(self, action):
        self.turn += 1
        reward = float(verify_answer(self.right, self.answer(action)))
        return ("Right." if reward else "Wrong."), reward, True, False, {}

    def solution(self):
        return self.right
