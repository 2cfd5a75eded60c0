import random
class SentimentEnv(TextEnv):
    GOOD = ["splendid", "lovely", "great", "charming"]; BAD = ["awful", "boring", "dull", "nasty"]
    def reset(self, seed=None):
        super().reset(seed)
        self.label = self.rng.choice(["positive", "negative"])
        w = self.rng.choice(self.GOOD if self.label == "positive" else self.BAD); n = self.rng.choice(["film", "meal", "walk", "book", "talk"])
        return f"Review: The {n} was {w}. Classify the review as positive or negative.", {}
    def solution(self): return self.label
    def step(self, action):
        return "ok", float(self.answer(action).strip().lower() == self.label), True, False, {}
