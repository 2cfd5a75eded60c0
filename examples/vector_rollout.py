"""Roll out a policy in many environments at once: one round trip to the sandbox for each step of all of them."""

import tempfile

import gymnasium
import numpy as np

import spade_envs
from spade_envs.memory import Memory
from spade_envs.record import EnvironmentRecord
from spade_envs.sandbox import default_sandbox
from spade_envs.validation import validate

SOURCE = r'''
class HiddenNumberEnv(TextEnv):
    """Find a number by guesses that are answered with "higher" or "lower"."""

    def reset(self, seed=None):
        super().reset(seed)
        self.secret = self.rng.randint(1, 100)
        return "I think of a number from 1 to 100. Put your guess into \\boxed{}.", {}

    def step(self, action):
        self.turn += 1
        guess = self.answer(action)
        if guess == str(self.secret):
            return "Right.", 1.0, True, False, {}
        word = "not a number" if not guess.isdigit() else "higher" if int(guess) < self.secret else "lower"
        return word, 0.0, self.turn >= self.max_turns, False, {}

    def solution(self):
        return str(self.secret)
'''


def main(episodes: int = 32) -> None:
    report = validate(SOURCE, sandbox=default_sandbox())
    record = EnvironmentRecord.create(SOURCE, report.name, proven=report.proven)
    with tempfile.TemporaryDirectory() as folder, Memory.open(folder) as memory:
        memory.add(record)
        (env_id,) = spade_envs.register(memory)
        envs = gymnasium.make_vec(env_id, num_envs=episodes)
        low, high = np.ones(episodes, dtype=int), np.full(episodes, 100)
        ended, returns = np.zeros(episodes, dtype=bool), np.zeros(episodes)
        envs.reset(seed=0)
        while not ended.all():
            guess = (low + high) // 2
            actions = [None if done else f"\\boxed{{{number}}}" for done, number in zip(ended, guess)]
            observations, rewards, terminations, truncations, _ = envs.step(actions)
            low = np.where([text == "higher" for text in observations], guess + 1, low)
            high = np.where([text == "lower" for text in observations], guess - 1, high)
            returns += rewards
            ended = terminations | truncations
        envs.close()
    print(f"{env_id}: bisection wins {int(returns.sum())} of {episodes} episodes")


if __name__ == "__main__":
    main()
