class ProductEnv(TextEnv):
    """Multiply two small numbers."""

    def reset(self, seed=None):
        super().reset(seed)
        a, b = self.rng.randint(3, 12), self.rng.randint(3, 12)
        self.right = a * b
        self.below = self.rng.randint(1, 2)
        return f"What is {a} times {b}?", {}

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
