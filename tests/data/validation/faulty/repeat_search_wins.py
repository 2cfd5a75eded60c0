# kind: a trivially repeated action wins
# verdict: refuse
# probe: know_nothing
import random
import re


class RuinsEnv(TextEnv):
    """An expedition; 'search' always makes progress, everything else is for show."""

    def __init__(self, max_turns=12, **kwargs):
        super().__init__(max_turns)

    def reset(self, seed=None):
        super().reset(seed)
        self.hidden = self.rng.choice(["mask", "tablet", "crown", "flute"])
        self.depth = self.rng.randint(3, 5)
        self.found = 0
        return (
            f"You enter a ruin in search of a {self.hidden}. You may dig, climb, read, rest or search, as \\boxed{{verb}}. "
            "Read the walls to learn where to dig."
        ), {}

    def solution(self):
        return ["read"] + ["search"] * (self.depth - self.found)

    def step(self, action):
        self.turn += 1
        verb = self.answer(action).lower().split(" ")[0]
        late = self.turn >= self.max_turns
        if verb == "search":
            self.found += 1
            if self.found >= self.depth:
                return f"The {self.hidden}!", 1.0, True, False, {}
            return "You find a shard.", 0.0, False, late, {}
        replies = {"read": "The signs are worn.", "dig": "Sand.", "climb": "A view.", "rest": "You feel better."}
        return replies.get(verb, "Nothing."), 0.0, False, late, {}
