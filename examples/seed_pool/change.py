class ChangeEnv(TextEnv):
    """Work out the change."""

    def reset(self, seed=None):
        super().reset(seed)
        price, paid = self.rng.randint(3, 48), 50
        self.right = paid - price
        self.below = self.rng.randint(1, 2)
        return f"A book costs {price} coins. You pay with 50 coins. How many coins do you get back?", {}

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
