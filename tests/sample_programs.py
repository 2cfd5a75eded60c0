"""Small programs in the manner of generated ones, and records of them."""

from spade_envs.record import EnvironmentRecord

GUESS = '''
class GuessEnv(TextEnv):
    """Find a secret number between 1 and 20.

    Every guess is answered by "higher" or "lower".
    """

    def __init__(self, max_turns=6, **kwargs):
        super().__init__(max_turns=max_turns)

    def reset(self, seed=None):
        super().reset(seed)
        self.secret = self.rng.randint(1, 20)
        self.noise = self.rng.randint(0, 10**9)
        return f"Guess my number between 1 and 20. Round {self.noise}.", {"round": self.noise}

    def step(self, action):
        self.turn += 1
        text = self.answer(action)
        try:
            guess = int(text)
        except ValueError:
            return f"Not a number: {text[:50]}", 0.0, False, self.turn >= self.max_turns, {"turn": self.turn}
        if guess == self.secret:
            return "Right!", 1.0, True, False, {"turn": self.turn}
        word = "higher" if guess < self.secret else "lower"
        return word, 0.0, False, self.turn >= self.max_turns, {"turn": self.turn}

    def hint(self):
        return f"It is {'even' if self.secret % 2 == 0 else 'odd'}; answer with a number."

    def solution(self):
        return str(self.secret)
'''

FAULTY = """
class FaultyEnv(TextEnv):
    def reset(self, seed=None):
        super().reset(seed)
        self.log = []
        if seed == 666:
            raise ValueError("no such start")
        return "Say something. ¿Qué? 数", {}

    def step(self, action):
        self.log.append(action)
        if action == "raise":
            raise RuntimeError("boom")
        if action == "hang":
            while True:
                pass
        if action == "die":
            hog = "x"
            while True:
                hog += hog
        if action == "nan":
            return "n", float("nan"), False, False, {}
        if action == "shape":
            return "n", 0.0, False
        if action == "rich":
            return "r", 7.5, True, False, {}
        if action == "long":
            return "x" * 200_000, 0.25, False, False, {"list": [1, 2], "word": "w"}
        return f"you said {action}", 0.0, False, False, {}
"""

BOXED = r'''
import re

class BoxedEnv(TextEnv):
    """Only a boxed answer counts."""

    def reset(self, seed=None):
        super().reset(seed)
        self.a, self.b = self.rng.randint(1, 50), self.rng.randint(1, 50)
        return f"What is {self.a} + {self.b}? Put the answer into \\boxed{{}}.", {}

    def step(self, action):
        found = re.search(r"\\boxed\{(-?\d+)\}", action)
        right = bool(found) and int(found.group(1)) == self.a + self.b
        return "Right." if right else "Wrong.", 1.0 if right else -1.0, True, False, {}

    def solution(self):
        return str(self.a + self.b)
'''

WALK = '''
class WalkEnv(TextEnv):
    """Go to the goal on a line; solution() gives the next move only."""

    def reset(self, seed=None):
        super().reset(seed)
        self.at = self.rng.randint(2, 4)
        return f"You are {self.at} steps left of the goal.", {}

    def step(self, action):
        self.turn += 1
        self.at -= {"right": 1, "left": -1}.get(action, 0)
        done = self.at == 0
        return f"{self.at} steps to go", 1.0 if done else 0.25, done, False, {}

    def solution(self):
        return ["right"]

    def get_tools(self):
        return [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}]
'''


def record(source: str, **fields: object) -> EnvironmentRecord:
    """Make a record; its name is that of the source's class."""
    name = source.split("class ", 1)[1].split("(", 1)[0]
    return EnvironmentRecord.create(source, name, **fields)
