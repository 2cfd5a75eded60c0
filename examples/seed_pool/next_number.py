class NextNumberEnv(TextEnv):
    """Go on with a sequence of equal steps."""

    def reset(self, seed=None):
        super().reset(seed)
        start, difference = self.rng.randint(1, 20), self.rng.randint(2, 6)
        terms = [start + index * difference for index in range(4)]
        self.right = start + 4 * difference
        self.below = self.rng.randint(1, 2)
        return f"Which number comes next: {', '.join(map(str, terms))}?", {}

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
