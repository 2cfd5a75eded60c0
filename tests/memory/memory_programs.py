"""Small programs and records for the memory's tests."""

from __future__ import annotations

import re

from spade_envs.record import EnvironmentRecord, PlayStatistics

MAZE = '''
import random

class MazeEnv:
    """Find the way out of a maze of rooms."""
    def __init__(self, max_turns=12, size=5):
        self.max_turns = max_turns
        self.size = size
        self.reset()

    def reset(self, seed=None):
        self.rng = random.Random(seed)
        self.position = (0, 0)
        self.walls = {(self.rng.randrange(self.size), self.rng.randrange(self.size)) for _ in range(6)}
        self.walls.discard((0, 0))
        self.turn = 0
        return f"You stand in a maze at {self.position}. Walk north, south, east or west.", {}

    def step(self, action):
        self.turn += 1
        moves = {"north": (0, -1), "south": (0, 1), "east": (1, 0), "west": (-1, 0)}
        move = moves.get(action.strip().lower())
        if move is None:
            return "That is no direction.", 0.0, False, self.turn >= self.max_turns, {}
        target = (self.position[0] + move[0], self.position[1] + move[1])
        if target in self.walls or min(target) < 0 or max(target) >= self.size:
            return "A wall.", 0.0, False, self.turn >= self.max_turns, {}
        self.position = target
        won = target == (self.size - 1, self.size - 1)
        return "You are out." if won else f"You are at {target}.", float(won), won, self.turn >= self.max_turns, {}
'''

AUCTION = '''
import random

class AuctionEnv:
    """Bid for paintings with a limited purse."""
    def __init__(self, max_turns=8):
        self.max_turns = max_turns
        self.reset()

    def reset(self, seed=None):
        self.rng = random.Random(seed)
        self.money = 100
        self.paintings = sorted(self.rng.randint(5, 60) for _ in range(5))
        self.owned = []
        return f"Auction: paintings are worth {self.paintings}. You hold {self.money} coins. Bid a number.", {}

    def step(self, action):
        try:
            bid = int(action)
        except ValueError:
            return "Bid a number.", 0.0, False, False, {}
        rival = self.rng.randint(1, 50)
        worth = self.paintings.pop()
        if bid > rival and bid <= self.money:
            self.money -= bid
            self.owned.append(worth)
        done = not self.paintings
        profit = sum(self.owned) + self.money - 100
        return f"The rival bid {rival}.", float(done and profit > 0), done, False, {"profit": profit}
'''

PLAIN = '''
class ChainEnv:
    """Continue the chain of words: each begins with the last letter of the one before."""
    def reset(self, seed=None):
        self.word = ["owl", "lamp", "pear", "rabbit"][(seed or 0) % 4]
        return f"The word is {self.word}. Name another.", {}

    def step(self, action):
        word = action.strip().lower()
        return "", float(word[:1] == self.word[-1]), True, False, {}
'''


def variant(number: int, source: str = PLAIN) -> EnvironmentRecord:
    """A record that differs from its siblings by a comment: another id, the same code."""
    return EnvironmentRecord.create(f"# {number}\n{source}", "ChainEnv", skill="Logic")


def renamed(source: str) -> str:
    """Other names of attributes, another class name, other numbers, other texts."""
    for word in ("position", "walls", "moves", "move", "target", "size", "won"):
        source = re.sub(rf"\b{word}\b", f"{word[::-1]}_2", source)
    source = re.sub(r"\b\d+\b", lambda match: str(int(match.group()) + 3), source)
    return source.replace("MazeEnv", "LabyrinthEnv").replace("A wall.", "Something solid is there.")


def played(plain: tuple[int, int], hinted: tuple[int, int] | None = None) -> PlayStatistics:
    """Statistics of (wins, plays) where a win returns 1 and a loss 0."""
    wins, plays = plain
    hinted_wins, hinted_plays = hinted or (0, 0)
    return PlayStatistics(plays, float(wins), wins, hinted_plays, float(hinted_wins), hinted_wins)
