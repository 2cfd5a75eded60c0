"""Text adventure with a hidden key; solution() gives the actions from the current state."""
import random
import re
from collections import deque

ROOMS = {
    "hall": {"north": "library", "east": "kitchen", "west": "study"},
    "library": {"south": "hall", "east": "attic"},
    "kitchen": {"west": "hall", "north": "attic"},
    "study": {"east": "hall"},
    "attic": {"west": "library", "south": "kitchen"},
}


class KeyHuntEnv:
    """Find the key and open the chest."""

    def __init__(self, max_turns=20, **kwargs):
        self.max_turns = max_turns
        self.reset()

    def reset(self, seed=None):
        rng = random.Random(seed)
        rooms = sorted(ROOMS)
        rng.shuffle(rooms)
        self.key_room, self.chest_room = rooms[0], rooms[1]
        self.room, self.has_key, self.turn = "hall", False, 0
        return (
            "Somewhere is a key, somewhere a chest. Commands: \\boxed{go DIRECTION}, \\boxed{take key}, "
            "\\boxed{open chest}. " + self._look()
        ), {}

    def _look(self):
        things = []
        if self.room == self.key_room and not self.has_key:
            things.append("a key")
        if self.room == self.chest_room:
            things.append("a chest")
        seen = " You see " + " and ".join(things) + "." if things else ""
        return f"You are in the {self.room}. Exits: {', '.join(sorted(ROOMS[self.room]))}.{seen}"

    def _path(self, start, goal):
        queue, seen = deque([(start, [])]), {start}
        while queue:
            room, path = queue.popleft()
            if room == goal:
                return path
            for direction, target in sorted(ROOMS[room].items()):
                if target not in seen:
                    seen.add(target)
                    queue.append((target, [*path, f"go {direction}"]))
        return []

    def solution(self):
        if self.has_key:
            return [*self._path(self.room, self.chest_room), "open chest"]
        first = self._path(self.room, self.key_room)
        return [*first, "take key", *self._path(self.key_room, self.chest_room), "open chest"]

    def hint(self):
        return "Explore every room; take the key first, then open the chest. Use \\boxed{go DIRECTION}."

    def step(self, action):
        self.turn += 1
        late = self.turn >= self.max_turns
        match = re.search(r"\\boxed\{([a-z]+) ([a-z]+)\}", action.lower())
        if match is None:
            return "I do not understand.", 0.0, False, late, {}
        verb, noun = match.groups()
        if verb == "go" and noun in ROOMS[self.room]:
            self.room = ROOMS[self.room][noun]
        elif verb == "take" and noun == "key" and self.room == self.key_room:
            self.has_key = True
            return "Taken.", 0.0, False, late, {}
        elif verb == "open" and noun == "chest" and self.room == self.chest_room and self.has_key:
            return "The chest opens!", 1.0, True, False, {}
        else:
            return "Nothing happens.", 0.0, False, late, {}
        return self._look(), 0.0, False, late, {}
