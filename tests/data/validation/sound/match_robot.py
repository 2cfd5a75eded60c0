"""match statements and tuples."""
import random


class RobotProgramEnv(TextEnv):
    """Run a short program by hand."""

    def reset(self, seed=None):
        super().reset(seed)
        self.program = [self._draw() for _ in range(6)]
        self.end = self._run()
        listing = "; ".join(" ".join(map(str, line)) for line in self.program)
        return f"A robot at (0,0) looks north and runs: {listing}. 'turn' is to the right. Where is it then? \\boxed{{x,y}}", {}

    def _draw(self):
        return self.rng.choice([("go", self.rng.randint(1, 9)), ("turn",), ("back", self.rng.randint(1, 4))])

    def _run(self):
        x, y, dx, dy = 0, 0, 0, 1
        for line in self.program:
            match line:
                case ("go", n):
                    x, y = x + n * dx, y + n * dy
                case ("back", n):
                    x, y = x - n * dx, y - n * dy
                case ("turn",):
                    dx, dy = dy, -dx
        return x, y

    def solution(self):
        return f"{self.end[0]},{self.end[1]}"

    def step(self, action):
        said = self.answer(action).replace(" ", "").strip("()")
        return "Done.", float(said == self.solution()), True, False, {}
