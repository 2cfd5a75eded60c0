class LegsEnv(TextEnv):
    """Count the legs of some animals."""

    def reset(self, seed=None):
        super().reset(seed)
        birds, dogs = self.rng.randint(1, 6), self.rng.randint(1, 6)
        self.right = 2 * birds + 4 * dogs
        self.below = self.rng.randint(1, 2)
        return f"How many legs do {birds} birds and {dogs} dogs have together?", {}

    def step(self, action):
        """The last number of the reply is the answer."""
        self.turn += 1
        numbers = re.findall(r"\d+", action)
        right = bool(numbers) and int(numbers[-1]) == self.right
        return "Right." if right else "Wrong.", float(right), True, False, {}

    def hint(self):
        low = self.right - self.below
        return f"The answer is a bit more than {low} and less than {low + 3}."

    def solution(self):
        return str(self.right)
