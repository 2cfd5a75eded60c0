"""From a program to episodes: validate it, store it, and play it through ``gymnasium.make``."""

import tempfile

import gymnasium

import spade_envs
from spade_envs.memory import Memory
from spade_envs.record import EnvironmentRecord
from spade_envs.sandbox import default_sandbox
from spade_envs.validation import validate

SOURCE = r'''
class ChangeEnv(TextEnv):
    """Pay an amount with as few coins of 1, 5, 12 and 25 as possible; a greedy payment is often too long."""

    COINS = (1, 5, 12, 25)

    def reset(self, seed=None):
        super().reset(seed)
        self.amount = self.rng.randint(30, 99)
        fewest = [0] + [None] * self.amount
        for value in range(1, self.amount + 1):
            fewest[value] = 1 + min(fewest[value - coin] for coin in self.COINS if coin <= value)
        self.fewest = fewest[self.amount]
        return f"Coins: 1, 5, 12, 25. Fewest coins that make {self.amount}? Put the number into \\boxed{{}}.", {}

    def step(self, action):
        right = self.answer(action) == str(self.fewest)
        return ("Right." if right else "Wrong."), float(right), True, False, {}

    def solution(self):
        return f"\\boxed{{{self.fewest}}}"
'''
HINT = "Work upwards from small amounts, and keep the best count for each; answer with one number in \\boxed{}."


def main() -> None:
    report = validate(SOURCE, sandbox=default_sandbox(), hint=HINT)
    print(f"{report.name}: admitted {report.admitted}, proven {report.proven}")
    for finding in report.findings:
        print(f"  {finding.severity}: {finding.reason}")

    record = EnvironmentRecord.create(SOURCE, report.name, hint=HINT, skill="Optimization", proven=report.proven)
    with tempfile.TemporaryDirectory() as folder, Memory.open(folder) as memory:
        memory.add(record)
        (env_id,) = spade_envs.register(memory)
        with gymnasium.make(env_id, render_mode="ansi") as env:
            observation, info = env.reset(seed=1, options={"hint": True})
            print(f"{env_id}, seed {info['seed']}\n{observation}")
            (answer,) = env.unwrapped.solution()
            _, reward, terminated, _, _ = env.step(f"I count the coins: {answer}")
            print(env.render())
            print(f"return {reward}, terminated {terminated}")


if __name__ == "__main__":
    main()
