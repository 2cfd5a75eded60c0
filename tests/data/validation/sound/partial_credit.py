"""Graded pay at the end."""
import random
import re


class ChangeEnv:
    COINS = (50, 20, 10, 5, 2, 1)

    def reset(self, seed=None):
        self.sum = random.Random(seed).randint(60, 199)
        return f"Pay {self.sum} with the fewest coins of {self.COINS}. List them: \\boxed{{50,20,5}}.", {}

    def solution(self):
        rest, coins = self.sum, []
        for coin in self.COINS:
            while rest >= coin:
                coins.append(coin)
                rest -= coin
        return ",".join(map(str, coins))

    def step(self, action):
        match = re.search(r"\\boxed\{([\d,\s]{1,200})\}", action)
        coins = [int(x) for x in match.group(1).split(",") if x.strip().isdigit()] if match else []
        if sum(coins) != self.sum or any(coin not in self.COINS for coin in coins):
            return "That is not the sum.", 0.0, True, False, {}
        best = self.solution().count(",") + 1
        return f"{len(coins)} coins.", min(1.0, best / len(coins)), True, False, {}
