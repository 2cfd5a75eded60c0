"""What the sandbox costs, in one run: python benchmarks/sandbox.py [FOLDER OF PROGRAMS]

Every figure is the best of several repetitions, and ratios within one run are what to look at: absolute times
depend on the machine. "plain" and "guarded" run inside a jailed child too (the programs are not trusted), but call
the program directly: by CPython's own rules, and with the sandbox's guards.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spade_envs.sandbox import Limits, Operation, Program, ProgramError, Sandbox

ACTIONS = ["\\boxed{50}", "east", '{"from": "ann", "to": "bob", "amount": 5}', "\\boxed{1,2}", "south", "look", ""]
STEPS, SESSIONS, REPEATS = 20, 64, 5


def best(measure: Callable[[], float], repeats: int = REPEATS) -> float:
    """Return the smallest of several measurements."""
    return min(measure() for _ in range(repeats))


def play_directly(make: Callable[[], Any], use_generator: Callable[[random.Random], None] | None) -> float:
    """Return microseconds per step of an episode, calling the program as a plain object."""
    environment, generator = make(), random.Random(0)
    steps, begin = 0, time.perf_counter()
    for seed in range(30):
        if use_generator is not None:
            use_generator(generator)
        generator.seed(seed)
        environment.reset(seed=seed)
        for turn in range(STEPS):
            steps += 1
            _, _, terminated, truncated, _ = environment.step(ACTIONS[turn % len(ACTIONS)])
            if terminated or truncated:
                break
    return (time.perf_counter() - begin) / steps * 1e6


def child(path: str) -> None:
    """In a subprocess: lock down, then measure the program without processes in between; print JSON."""
    from spade_envs.sandbox import jail, loader
    from spade_envs.sandbox.policy import FILENAME

    loader.warm()
    loader.harden()
    source = Path(path).read_text()
    jail.lock_down(keep=1, parent=os.getppid(), memory_mb=512, cpu_seconds=120)
    guarded = loader.load_program(source)
    answer = {"guarded": best(lambda: play_directly(guarded, loader.use_generator))}
    try:
        namespace: dict[str, Any] = loader.make_namespace() | {"__builtins__": __builtins__, "random": random}
        exec(compile(source, FILENAME, "exec", dont_inherit=True), namespace)
        answer["plain"] = best(lambda: play_directly(namespace[guarded.__name__], None))
    except Exception:  # it needs what only the sandbox provides
        answer["plain"] = float("nan")
    os.write(1, json.dumps(answer).encode())


def play_one_by_one(program: Program) -> float:
    """Return microseconds per step of one session, one operation to a request."""
    session = program.session()
    steps, begin = 0, time.perf_counter()
    for seed in range(10):
        session.reset(seed)
        for turn in range(STEPS):
            steps += 1
            result = session.step(ACTIONS[turn % len(ACTIONS)])
            if result.terminated or result.truncated:
                break
    elapsed = time.perf_counter() - begin
    session.close()
    return elapsed / steps * 1e6


def play_together(sandbox: Sandbox, programs: list[Program], sessions: int) -> float:
    """Return microseconds per step of ``sessions`` sessions of each program, one request to a program and turn."""
    alive = {program: list(range(1, sessions + 1)) for program in programs}
    sandbox.run_many([(program, [Operation("make", n) for n in numbers]) for program, numbers in alive.items()])
    steps, begin = 0, time.perf_counter()
    sandbox.run_many([(program, [Operation("reset", n, n) for n in numbers]) for program, numbers in alive.items()])
    for turn in range(STEPS):
        action = ACTIONS[turn % len(ACTIONS)]
        batches = [
            (program, [Operation("step", n, action) for n in numbers]) for program, numbers in alive.items() if numbers
        ]
        for (program, _), outcomes in zip(batches, sandbox.run_many(batches), strict=True):
            steps += len(outcomes)
            alive[program] = [
                number
                for number, outcome in zip(alive[program], outcomes, strict=True)
                if outcome.value is not None and not (outcome.value.terminated or outcome.value.truncated)
            ]
    elapsed = time.perf_counter() - begin
    sandbox.run_many([(program, [Operation("close", n) for n in range(1, sessions + 1)]) for program in programs])
    return elapsed / steps * 1e6


def table_of_programs(sandbox: Sandbox, paths: list[Path]) -> None:
    """Print microseconds per step, for each program and way of running it."""
    print(f"microseconds per step, episodes of {STEPS} steps (in brackets: ratio to plain)")
    print(f"{'program':24} {'plain':>8} {'guarded':>15} {'worker':>15} {f'worker, {SESSIONS} at once':>19}")
    ratios: dict[str, list[float]] = {"guarded": [], "worker": [], "together": []}
    for path in paths:
        try:
            program = sandbox.open(path.read_text())
        except ProgramError as error:
            print(f"{path.stem:24} not run: {error}"[:110])
            continue
        completed = subprocess.run(
            [sys.executable, __file__, "--child", str(path)], capture_output=True, text=True, check=False
        )
        if completed.returncode != 0:
            print(f"{path.stem:24} not run: {completed.stderr.strip()[-80:]}")
            continue
        times = json.loads(completed.stdout)
        times["worker"] = best(lambda program=program: play_one_by_one(program))
        times["together"] = best(lambda program=program: play_together(sandbox, [program], SESSIONS))
        line = f"{path.stem:24} {times['plain']:8.1f}"
        for name, width in (("guarded", 15), ("worker", 15), ("together", 19)):
            ratio = times[name] / times["plain"]
            ratios[name] += [ratio] if ratio == ratio else []
            line += f" {f'{times[name]:.1f} ({ratio:.2f})':>{width}}"
        print(line)
        program.close()
    means = {name: statistics.geometric_mean(values) for name, values in ratios.items() if values}
    print("geometric mean of ratios: " + ", ".join(f"{name} {value:.2f}" for name, value in means.items()))


def table_of_lives(sandbox: Sandbox, source: str) -> None:
    """Print milliseconds of starting, killing and replacing workers."""

    def start() -> float:
        begin = time.perf_counter()
        program = sandbox.open(source)
        program.session().reset(1)
        elapsed = time.perf_counter() - begin
        program.close()
        return elapsed * 1e3

    def replace() -> float:
        program = sandbox.open(source)
        session = program.session()
        session.reset(1)
        begin = time.perf_counter()
        program.seat.vacate()
        session.step("x")
        elapsed = time.perf_counter() - begin
        program.close()
        return elapsed * 1e3

    def zygote() -> float:
        begin = time.perf_counter()
        with Sandbox() as other:
            _ = other.isolation
        return (time.perf_counter() - begin) * 1e3

    print("\nmilliseconds, best of several")
    print(f"  start a fork server, jail a worker, stop both        {best(zygote, 3):8.1f}")
    print(f"  open: fork, jail, load; then make and reset          {best(start, 20):8.1f}")
    print(f"  kill a worker; fork, jail, load, replay, step        {best(replace, 20):8.1f}")


def table_of_pools(source: str) -> None:
    """Print the throughput of many programs at once."""
    print("\nprograms at once, 8 sessions each: steps per second")
    for count, workers in ((1, 100), (10, 100), (100, 100), (100, 64)):
        with Sandbox(Limits(), max_workers=workers) as sandbox:
            programs = [sandbox.open(source) for _ in range(count)]
            rate = 1e6 / best(lambda s=sandbox, p=programs: play_together(s, p, 8), 3)
            note = "" if count <= workers else "  (workers stopped and revived all the time)"
            print(f"  {count:4} programs, {workers:3} workers {rate:10.0f}{note}")


def main() -> None:
    """Run everything."""
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2])
        return
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("programs")
    paths = sorted(folder.glob("*.py"))
    with Sandbox() as sandbox:
        report = sandbox.isolation
        print(f"isolation {report.level}, {os.cpu_count()} processors, Python {sys.version.split()[0]}\n")
        table_of_programs(sandbox, paths)
        grid = Path(__file__).with_name("programs").joinpath("grid.py").read_text()
        table_of_lives(sandbox, grid)
    table_of_pools(grid)


if __name__ == "__main__":
    main()
