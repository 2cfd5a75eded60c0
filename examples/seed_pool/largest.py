class LargestEnv(TextEnv):
    """Find the largest of three numbers."""

    def reset(self, seed=None):
        super().reset(seed)
        shown = self.rng.sample(range(10, 99), 3)
        self.right = max(shown)
        self.below = self.rng.randint(1, 2)
        return f"Numbers: {shown[0]}, {shown[1]}, {shown[2]}. Which is the largest?", {}

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
