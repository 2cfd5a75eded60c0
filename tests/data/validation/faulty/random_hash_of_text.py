# kind: non-determinism, hash of a text
# verdict: admitted
# probe: determinism
# needs: nothing: the sandbox fixes how texts are hashed, in every process
import random
import re


class LibraryShelfEnv(TextEnv):
    """Books are shelved by hash(title); plain Python salts that in every process."""

    TITLES = ["Emma", "Ulysses", "Dracula", "Walden", "Candide", "Beloved", "Dune", "Persuasion", "Middlemarch"]

    def __init__(self, max_turns=2, **kwargs):
        super().__init__(max_turns)

    def reset(self, seed=None):
        super().reset(seed)
        books = self.rng.sample(self.TITLES, 5)
        self.shelves = {title: hash(title) % 7 + 1 for title in books}
        self.total = sum(self.shelves.values()) * self.rng.randint(2, 30)
        factor = self.total // sum(self.shelves.values())
        listing = ", ".join(f"{title}: shelf {shelf}" for title, shelf in self.shelves.items())
        return f"{listing}. Add up the shelf numbers and multiply by {factor}. \\boxed{{number}}", {}

    def solution(self):
        return str(self.total)

    def step(self, action):
        self.turn += 1
        ok = self.answer(action) == str(self.total)
        return ("Shelved." if ok else "No."), float(ok), ok, not ok and self.turn >= self.max_turns, {}
