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
    """Count the ways to pay an amount with coins of 1, 5, 12 and 25."""

    def reset(self, seed=None):
        super().reset(seed)
        self.amount = self.rng.randint(100, 600)
        ways = [1] + [0] * self.amount
        for coin in (1, 5, 12, 25):
            for value in range(coin, self.amount + 1):
                ways[value] += ways[value - coin]
        self.ways = ways[self.amount]
        return f"Coins: 1, 5, 12, 25. How many sets of coins make {self.amount}? Answer in \\boxed{{}}.", {}

    def step(self, action):
        right = self.answer(action) == str(self.ways)
        return ("Right." if right else "Wrong."), float(right), True, False, {}

    def solution(self):
        return f"\\boxed{{{self.ways}}}"
'''
HINT = "Take the coins one kind after the other, and keep a count for every smaller amount; one number in \\boxed{}."


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
