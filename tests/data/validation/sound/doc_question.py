"""The answer is a span of the text that is shown."""
import random


class HistoryEnv(TextEnv):
    FACTS = [
        ("the old stone bridge", "opened in the spring of 1847", "When did the bridge open?", "in the spring of 1847"),
        ("the paper mill", "burned down after the great frost", "When did the mill burn down?", "after the great frost"),
        ("the brass band", "met behind the cattle market", "Where did the band meet?", "behind the cattle market"),
        ("the ferry", "was moved to the northern shore", "Where was the ferry moved?", "to the northern shore"),
    ]

    def reset(self, seed=None):
        super().reset(seed)
        chosen = self.rng.sample(self.FACTS, 3)
        text = " ".join(f"In this town, {subject} {said}, as people tell." for subject, said, _, _ in chosen)
        fact = self.rng.choice(chosen)
        self.expected = fact[3]
        return f"{text}\n{fact[2]} Answer in the words of the text.", {}

    def solution(self):
        return self.expected

    def step(self, action):
        return "done", float(self.answer(action).strip(" .").lower() == self.expected), True, False, {}
