"""Pick the heaviest of three, answer space of three."""
import random


class HeaviestBoxEnv:
    def reset(self, seed=None):
        rng = random.Random(seed)
        self.boxes = {colour: [rng.randint(1, 30) for _ in range(4)] for colour in ("red", "green", "blue")}
        listing = "; ".join(f"{colour}: {weights}" for colour, weights in self.boxes.items())
        return f"Which box is the heaviest (sum of weights)? {listing}. Reply with one of red, green, blue.", {}

    def solution(self):
        return max(self.boxes, key=lambda colour: sum(self.boxes[colour]))

    def step(self, action):
        return "done", float(action.strip().lower() == self.solution()), True, False, {}
