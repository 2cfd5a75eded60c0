import random
class QuizEnv(TextEnv):
    Q = [("What is the chemical symbol of gold?", "Au"), ("How many legs has a spider?", "8"), ("Which planet is the largest?", "Jupiter"),
         ("What is the square root of 169?", "13"), ("Who wrote Hamlet?", "Shakespeare"), ("What is the capital of France?", "Paris")]
    def reset(self, seed=None):
        super().reset(seed)
        self.q, self.a = self.rng.choice(self.Q)
        return f"Question: {self.q}\nAnswer:", {}
    def solution(self): return self.a
    def step(self, action):
        return "ok", float(self.answer(action).strip().lower() == self.a.lower()), True, False, {}
