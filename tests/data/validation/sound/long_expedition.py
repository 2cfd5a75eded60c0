"""Twenty turns or more: a supply game that a plan wins."""
import random
import re


class PolarTrekEnv:
    """Walk to the pole; eat before you starve, rest before you drop."""

    def __init__(self, max_turns=40, **kwargs):
        self.max_turns = max_turns
        self.reset()

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turn, self.at = 0, 0
        self.goal, self.food, self.hunger, self.strength = rng.randint(9, 12), rng.randint(5, 7), 0, rng.randint(3, 4)
        return (
            f"The pole is {self.goal} days away. You carry {self.food} rations. {self._look()} Each turn: \\boxed{{walk}} (one day on, hunger +1, "
            "strength -1), \\boxed{eat} (one ration, hunger to 0) or \\boxed{rest} (strength +2, hunger +1). You die at hunger 5 or strength 0."
        ), {}

    def _look(self):
        return f"Hunger {self.hunger}, strength {self.strength}."

    def solution(self):
        at, hunger, strength, plan = self.at, self.hunger, self.strength, []
        while at < self.goal:
            if hunger >= 3:
                plan.append("eat")
                hunger = 0
            elif strength <= 1:
                plan.append("rest")
                strength, hunger = strength + 2, hunger + 1
            else:
                plan.append("walk")
                at, hunger, strength = at + 1, hunger + 1, strength - 1
        return plan

    def step(self, action):
        self.turn += 1
        m = re.search(r"\\boxed\{(walk|eat|rest)\}", action.lower())
        move = m.group(1) if m else "rest"
        if move == "walk":
            self.at, self.hunger, self.strength = self.at + 1, self.hunger + 1, self.strength - 1
        elif move == "eat" and self.food > 0:
            self.food, self.hunger = self.food - 1, 0
        else:
            self.strength, self.hunger = self.strength + 2, self.hunger + 1
        if self.hunger >= 5 or self.strength <= 0:
            return "You perish in the ice.", 0.0, True, False, {}
        if self.at >= self.goal:
            return "The pole!", 1.0, True, False, {}
        return f"Day {self.at} of {self.goal}. {self._look()} {self.food} rations.", 0.0, False, self.turn >= self.max_turns, {}
