class LettersEnv(TextEnv):
    def __init__(self, max_turns=1, **kwargs):
        super().__init__(max_turns, **kwargs)
        self.right = ""

    def reset(self, seed=None):
        super().reset(seed)
        word = ''.join(self.rng.choice('aeioutnrs') for _ in range(self.rng.randint(9, 14)))
        self.right = str(len(set(word)))
        return f"How many different letters are in {word}? Answer with \\boxed{{number}}.", {}

    def step(self, action):
        self.turn += 1
        reward = float(verify_answer(self.right, self.answer(action)))
        return ("Right." if reward else "Wrong."), reward, True, False, {}

    def solution(self):
        return self.right
