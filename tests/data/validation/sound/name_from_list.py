"""The answer is one of the names in the text."""
import random


class RelayRaceEnv(TextEnv):
    NAMES = ["Iris", "Juno", "Kaya", "Lea", "Mina", "Nora"]

    def __init__(self, max_turns=2, **kwargs):
        super().__init__(max_turns)

    def reset(self, seed=None):
        super().reset(seed)
        order = self.rng.sample(self.NAMES, 5)
        self.third = order[2]
        facts = [f"{a} finished right before {b}." for a, b in zip(order, order[1:])]
        self.rng.shuffle(facts)
        return " ".join(facts) + " Nobody else ran. Who came third? \\boxed{name}", {}

    def hint(self):
        return "Chain the sentences: find the runner whom nobody is said to precede, then follow on. Answer \\boxed{name}."

    def solution(self):
        return self.third

    def step(self, action):
        self.turn += 1
        ok = self.answer(action).strip(" .").lower() == self.third.lower()
        return ("Yes." if ok else "No."), float(ok), ok, not ok and self.turn >= self.max_turns, {}
