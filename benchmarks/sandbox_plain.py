"""A program without processes in between: as CPython runs it, and as the sandbox compiles it, in a jailed child."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

EPISODES = 60


class Plain(NamedTuple):
    """Microseconds of a step."""

    wall: float
    cpu: float
    guarded_cpu: float


def measure_directly(path: Path, actions: Sequence[str], steps: int, repeats: int) -> Plain | None:
    """Measure one program; None if it needs what only the sandbox provides."""
    command = [sys.executable, __file__, str(path), str(steps), str(repeats), json.dumps(actions)]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    return Plain(*json.loads(completed.stdout)) if completed.returncode == 0 and completed.stdout else None


def play(environment: Any, seed_with: Callable[[int], Any], actions: Sequence[str], steps: int) -> tuple[float, float]:
    """Return wall-clock and CPU microseconds per step of a loop that seeds, resets and steps."""
    count, wall, cpu = 0, time.perf_counter(), time.thread_time()
    for seed in range(1, EPISODES + 1):
        seed_with(seed)
        environment.reset(seed=seed)
        for turn in range(steps):
            count += 1
            try:
                _, _, terminated, truncated, _ = environment.step(actions[turn % len(actions)])
            except Exception:
                break
            if terminated or truncated:
                break
    wall, cpu = time.perf_counter() - wall, time.thread_time() - cpu
    return wall / count * 1e6, cpu / count * 1e6


def _child() -> None:
    """Lock down, then measure; print JSON."""
    from spade_envs.sandbox import jail, loader
    from spade_envs.sandbox.policy import FILENAME

    path, steps, repeats, actions = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), json.loads(sys.argv[4])
    loader.warm()
    loader.harden()
    source = Path(path).read_text()
    jail.lock_down(keep=1, parent=os.getppid(), memory_mb=512, cpu_seconds=120)
    guarded = loader.load_program(source)
    namespace: dict[str, Any] = loader.make_namespace() | {"__builtins__": __builtins__, "random": random}
    exec(compile(source, FILENAME, "exec", dont_inherit=True), namespace)
    generator = random.Random(0)
    loader.use_generator(generator)
    one, other = namespace[guarded.__name__](), guarded()
    plain, compiled = [], []
    for _ in range(3 * repeats):  # in turn, so that both see the same load
        plain.append(play(one, random.seed, actions, steps))
        compiled.append(play(other, generator.seed, actions, steps))
    answer = [min(wall for wall, _ in plain), min(cpu for _, cpu in plain), min(cpu for _, cpu in compiled)]
    os.write(1, json.dumps(answer).encode())


if __name__ == "__main__":
    _child()
