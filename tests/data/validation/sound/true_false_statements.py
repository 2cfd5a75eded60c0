"""Three statements, each true or false; chance is one eighth."""
import random


class TruthTableEnv(TextEnv):
    def __init__(self, max_turns=1, **kwargs):
        super().__init__(max_turns)

    def reset(self, seed=None):
        super().reset(seed)
        p, q = self.rng.random() < 0.5, self.rng.random() < 0.5
        forms = {"p and q": p and q, "p or q": p or q, "not p": not p, "p implies q": not p or q, "p xor q": p != q}
        chosen = self.rng.sample(sorted(forms), 3)
        self.answers = [forms[f] for f in chosen]
        return f"p is {str(p).lower()}, q is {str(q).lower()}. Are these true or false, in order: {'; '.join(chosen)}? For example \\boxed{{true,true,false}}.", {}

    def solution(self):
        return ",".join(str(a).lower() for a in self.answers)

    def step(self, action):
        said = self.answer(action).lower().replace(" ", "")
        return "Checked.", float(said == self.solution()), True, False, {}
