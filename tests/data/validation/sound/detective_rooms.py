"""A text adventure with clues in rooms; accusing needs what was read."""
import random
import re


class ManorEnv:
    ROOMS = ["library", "cellar", "garden", "attic"]
    PEOPLE = ["cook", "butler", "nurse", "heir"]
    THINGS = ["rope", "vase", "knife", "poker"]

    def __init__(self, max_turns=12, **kwargs):
        self.max_turns = max_turns
        self.reset()

    def reset(self, seed=None):
        rng = random.Random(seed)
        self.turn = 0
        self.who, self.thing = rng.choice(self.PEOPLE), rng.choice(self.THINGS)
        rooms = rng.sample(self.ROOMS, 2)
        self.clues = {rooms[0]: f"A glove of the {self.who} lies here.", rooms[1]: f"Here the {self.thing} was wiped clean."}
        self.rooms = rooms
        return (
            f"A crime in the manor. Rooms: {', '.join(self.ROOMS)}. People: {', '.join(self.PEOPLE)}. Things: {', '.join(self.THINGS)}. "
            "Commands: \\boxed{search ROOM}, \\boxed{accuse PERSON THING}. You may accuse once."
        ), {}

    def solution(self):
        return [f"search {room}" for room in self.rooms] + [f"accuse {self.who} {self.thing}"]

    def step(self, action):
        self.turn += 1
        late = self.turn >= self.max_turns
        m = re.search(r"\\boxed\{\s*(search|accuse)\s+(\w+)(?:\s+(\w+))?\s*\}", action.lower())
        if not m:
            return "Search or accuse.", 0.0, False, late, {}
        verb, first, second = m.groups()
        if verb == "search":
            return self.clues.get(first, "Dust, nothing else."), 0.0, False, late, {}
        won = (first, second) == (self.who, self.thing)
        return ("Case closed." if won else "The wrong one hangs."), float(won), True, False, {}
