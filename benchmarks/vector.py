"""Steps per second: ``SyntheticVectorEnv`` against ``gymnasium.vector.AsyncVectorEnv``, in one run.

Both step the same environment with the same actions; episodes never end, so that nothing but stepping is timed. The
asynchronous environments run without shared memory (their faster setting for long texts), one process and one
sandbox worker for each sub-environment.

    python benchmarks/vector.py --envs 64 --seconds 5
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from functools import partial

import gymnasium
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv

import spade_envs
from spade_envs.memory import Memory
from spade_envs.record import EnvironmentRecord

SOURCE = """
class CounterEnv(TextEnv):
    def reset(self, seed=None):
        super().reset(seed)
        self.total = self.rng.randint(0, 9)
        self.grid = [[self.rng.choice(".#") for _ in range(12)] for _ in range(12)]
        return self.show(), {}

    def show(self):
        return "\\n".join("".join(row) for row in self.grid) + f"\\nTotal {self.total}"

    def step(self, action):
        self.turn += 1
        self.total += len(action)
        self.grid[self.total % 12][self.turn % 12] = "@"
        return self.show(), 0.0, False, False, {"turn": self.turn}
"""


def measure(envs: VectorEnv, seconds: float) -> float:
    """Return sub-environment steps per second."""
    envs.reset(seed=0)
    actions = tuple(f"move {index}" for index in range(envs.num_envs))
    for _ in range(3):
        envs.step(actions)
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        envs.step(actions)
        steps += envs.num_envs
    rate = steps / (time.perf_counter() - start)
    envs.close()
    return rate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", type=int, default=64, help="sub-environments (default 64)")
    parser.add_argument("--seconds", type=float, default=5.0, help="time for each measurement (default 5)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Memory.open(folder) as memory:
        memory.add(EnvironmentRecord.create(SOURCE, "CounterEnv"))
        (env_id,) = spade_envs.register(memory)
        spec = gymnasium.spec(env_id)
        make = partial(gymnasium.make, spec, disable_env_checker=True)
        number, processors = arguments.envs, os.cpu_count() or 1
        rows = {
            "AsyncVectorEnv(shared_memory=False)": lambda: AsyncVectorEnv([make] * number, shared_memory=False),
            "SyncVectorEnv": lambda: SyncVectorEnv([make] * number),
            "SyntheticVectorEnv, 1 worker": lambda: gymnasium.make_vec(spec, num_envs=number),
            f"SyntheticVectorEnv, {processors} workers": lambda: gymnasium.make_vec(
                spec, num_envs=number, workers=processors
            ),
        }
        base = 0.0
        print(f"{number} sub-environments, {processors} processors")
        print(f"{'':40}{'steps/s':>10}{'ratio':>8}")
        for name, build in rows.items():
            rate = measure(build(), arguments.seconds)
            base = base or rate
            print(f"{name:40}{rate:10.0f}{rate / base:8.1f}", flush=True)


if __name__ == "__main__":
    main()
