"""What the sandbox costs, in one run: python benchmarks/sandbox.py [--repeats N] [FOLDER OF PROGRAMS …]

By default the programs are those of this folder and of the tests (environments in the style of a code model, and the
sound programs of the validator's truth set). "plain" is the program in a loop that seeds, resets and steps and does
nothing else, by CPython's own rules; "guarded" is the same loop over the program as the sandbox compiles it. Both run
inside a jailed child (the programs are not trusted).

Every figure is the best of several repetitions; ratios within one run are what to look at. CPU time, where given, is
that of the caller and the workers together, so that other load on the machine does not count.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from sandbox_memory import memory_of, tree
from sandbox_plain import measure_directly

from spade_envs.sandbox import Limits, Operation, Program, ProgramError, Sandbox

HERE = Path(__file__).resolve().parent
DATA = HERE.parent / "tests" / "data"
FOLDERS = [HERE / "programs", DATA / "llm_style", DATA / "validation" / "sound"]
ACTIONS = ["\\boxed{50}", "east", '{"from": "ann", "to": "bob", "amount": 5}', "\\boxed{1,2}", "south", "look", ""]
STEPS, SESSIONS = 20, 64


def best(measure: Callable[[], float], repeats: int) -> float:
    """Return the smallest of several measurements."""
    return min(measure() for _ in range(repeats))


def cpu_of(programs: Sequence[Program]) -> float:
    """Return the CPU seconds of this process and the programs' workers."""
    pids = [program.seat.worker.pid for program in programs if program.seat.worker is not None]
    # not the process's clock: with a limit on CPU time set, as in a worker, that moves in ticks
    return time.process_time() + sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in pids) / 1e9


def actions_for(program: Program) -> list[str]:
    """Return what is played: the program's own solution of one seed where it has one, and actions that mostly fail."""
    session = program.session()
    session.reset(1)
    solution = session.solution() or []
    session.close()
    return [
        action for pair in itertools.zip_longest(ACTIONS, solution[:STEPS]) for action in pair if action is not None
    ]


def play_together(
    sandbox: Sandbox, programs: Sequence[Program], sessions: int, actions: Sequence[str], turns: int = STEPS
) -> tuple[float, float]:
    """Return wall-clock and CPU microseconds per step of ``sessions`` sessions of each program.

    One request to a program and turn; a session whose episode has ended is reset in the next one.
    """
    numbers = range(1, sessions + 1)
    sandbox.run_many([(program, [Operation("make", n) for n in numbers]) for program in programs])
    seeds = itertools.count(1)
    fresh = {program: list(numbers) for program in programs}
    ages: dict[Program, dict[int, int]] = {program: {} for program in programs}
    steps, cpu, begin = 0, cpu_of(programs), time.perf_counter()
    for _ in range(turns):
        batches = []
        for program in programs:
            batch = [Operation("reset", n, next(seeds)) for n in fresh[program]]
            batch += [Operation("step", n, actions[age % len(actions)]) for n, age in ages[program].items()]
            batches.append((program, batch))
        for (program, batch), outcomes in zip(batches, sandbox.run_many(batches), strict=True):
            age, begun = ages[program], fresh[program]
            steps += len(batch) - len(begun)
            ended = []
            for operation, (result, _) in zip(batch[len(begun) :], outcomes[len(begun) :], strict=True):
                number = operation.session
                age[number] += 1
                if result is None or result.terminated or result.truncated or age[number] == STEPS:
                    ended.append(number)
                    del age[number]
            age.update(dict.fromkeys(begun, 0))
            fresh[program] = ended
    wall, cpu = time.perf_counter() - begin, cpu_of(programs) - cpu
    sandbox.run_many([(program, [Operation("close", n) for n in numbers]) for program in programs])
    return wall / max(steps, 1) * 1e6, cpu / max(steps, 1) * 1e6


def play_one_by_one(program: Program, actions: Sequence[str]) -> float:
    """Return microseconds per step of one session, one operation to a request."""
    session = program.session()
    steps, begin = 0, time.perf_counter()
    for seed in range(1, 11):
        session.reset(seed)
        for turn in range(STEPS):
            steps += 1
            result = session.step(actions[turn % len(actions)])
            if result.terminated or result.truncated:
                break
    elapsed = time.perf_counter() - begin
    session.close()
    return elapsed / steps * 1e6


def table_of_programs(sandbox: Sandbox, paths: Sequence[Path], repeats: int) -> None:
    """Print microseconds per step for each program, and what share of the plain throughput a worker gives."""
    print(
        f"microseconds of a step; episodes of up to {STEPS} steps, resets included; {SESSIONS} sessions on one worker"
    )
    print(
        f"{'program':24}{'plain':>8}{'guarded':>9}{'worker':>8}{'caller+worker':>15}{'share of plain throughput':>27}"
    )
    print(f"{'':24}{'wall':>8}{'CPU ×':>9}{'wall':>8}{'CPU':>15}{'by wall':>18}{'by CPU':>9}")
    rows = []
    for path in paths:
        try:
            program = sandbox.open(path.read_text())
            actions = actions_for(program)
        except ProgramError as error:
            print(f"{path.stem:24}not run: {error}"[:110])
            continue
        plain = measure_directly(path, actions, STEPS, repeats)
        if plain is None:
            print(f"{path.stem:24}not run plainly")
            continue
        played = [play_together(sandbox, [program], SESSIONS, actions, 2 * STEPS) for _ in range(repeats)]
        wall, cpu = min(one[0] for one in played), min(one[1] for one in played)
        row = (plain.wall, plain.guarded_cpu / plain.cpu, wall, cpu, plain.wall / wall, plain.cpu / cpu)
        rows.append(row)
        print(
            f"{path.stem:24}{row[0]:8.2f}{row[1]:9.2f}{row[2]:8.2f}{row[3]:15.2f}{row[4]:18.0%}{row[5]:9.0%}",
            flush=True,
        )
        program.close()
    for name, pick in (("median", 0.5), ("lowest quarter", 0.25), ("highest quarter", 0.75)):
        values = [sorted(column)[int(pick * (len(rows) - 1))] for column in zip(*rows, strict=True)]
        print(
            f"{name:24}{values[0]:8.2f}{values[1]:9.2f}{values[2]:8.2f}{values[3]:15.2f}{values[4]:18.0%}{values[5]:9.0%}"
        )
    print(f"geometric mean of guarded code: {statistics.geometric_mean(row[1] for row in rows):.2f} × plain CPU")


def table_of_sessions(sandbox: Sandbox, source: str, repeats: int) -> None:
    """Print how the cost of a step and the memory of a worker grow with the number of sessions."""
    print("\nsessions of one program on one worker (grid)")
    print(f"{'sessions':>10}{'wall µs a step':>16}{'CPU µs a step':>15}{'make, µs':>10}{'worker PSS, MB':>16}")
    for count in (1, 10, 100, 1000):
        program = sandbox.open(source)
        measured = [play_together(sandbox, [program], count, ACTIONS) for _ in range(repeats)]
        begin = time.perf_counter()
        program.run([Operation("make", number) for number in range(count)])
        made = (time.perf_counter() - begin) / count * 1e6
        program.run([Operation("reset", number, number) for number in range(count)])
        worker = program.seat.worker
        memory = memory_of([worker.pid]) if worker is not None else 0.0
        wall, cpu = min(one[0] for one in measured), min(one[1] for one in measured)
        print(f"{count:10}{wall:16.1f}{cpu:15.1f}{made:10.0f}{memory:16.1f}", flush=True)
        program.close()


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

    def one_by_one() -> float:
        program = sandbox.open(source)
        elapsed = play_one_by_one(program, ACTIONS)
        program.close()
        return elapsed / 1e3

    print("\nmilliseconds, best of several")
    print(f"  start a fork server, jail a worker, stop both        {best(zygote, 3):8.1f}")
    print(f"  open: fork, jail, load; then make and reset          {best(start, 20):8.1f}")
    print(f"  kill a worker; fork, jail, load, replay, step        {best(replace, 20):8.1f}")
    print(f"  one step in a request of its own                     {best(one_by_one, 5):8.3f}")


def table_of_workers(paths: Sequence[Path], repeats: int) -> None:
    """Print what a second worker adds: the same sessions a worker, all in one call."""
    print(f"\nworkers of one program, {SESSIONS} sessions each: steps a second, and what the workers leave to be done")
    print(f"{'program':24}{'1 worker':>10}{'2 workers':>10}{'adds':>7}{'caller, share of CPU':>22}")
    for path in paths:
        with Sandbox() as sandbox:
            programs = [sandbox.open(path.read_text()) for _ in range(2)]
            actions = actions_for(programs[0])
            walls: tuple[list[float], list[float]] = ([], [])
            for _ in range(2 * repeats):
                for count in (1, 2):
                    walls[count - 1].append(play_together(sandbox, programs[:count], SESSIONS, actions)[0])
            ours, all_ = time.process_time(), cpu_of(programs)
            play_together(sandbox, programs, SESSIONS, actions, 5 * STEPS)
            share = (time.process_time() - ours) / (cpu_of(programs) - all_)
            one, two = 1e6 / min(walls[0]), 1e6 / min(walls[1])
            print(f"{path.stem:24}{one:10.0f}{two:10.0f}{two / one - 1:7.0%}{share:22.0%}", flush=True)


def table_of_pools(source: str) -> None:
    """Print throughput and memory of many programs at once."""
    print(
        "\nprograms at once, 8 sessions each: steps a second, memory (PSS) of caller, fork server and workers together"
    )
    print(f"{'programs':>10}{'workers':>9}{'steps/s':>10}{'MB':>8}{'of that the caller':>20}")
    for count, workers in ((1, 64), (10, 64), (100, 128), (100, 64), (1000, 64)):
        with Sandbox(Limits(), max_workers=workers) as sandbox:
            programs = [sandbox.open(source) for _ in range(count)]
            turns, repeats = (STEPS, 3) if count <= workers else (2, 1)
            rate = 1e6 / best(lambda s=sandbox, p=programs, t=turns: play_together(s, p, 8, ACTIONS, t)[0], repeats)
            sandbox.run_many([(program, list(_begin(8))) for program in programs])
            total, caller = memory_of(tree(os.getpid())), memory_of([os.getpid()])
            note = "" if count <= workers else "  (workers stopped and revived all the time)"
            print(f"{count:10}{workers:9}{rate:10.0f}{total:8.0f}{caller:20.0f}{note}", flush=True)


def _begin(sessions: int) -> Iterator[Operation]:
    for number in range(1, sessions + 1):
        yield Operation("make", number)
        yield Operation("reset", number, number)


def main() -> None:
    """Run everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, default=FOLDERS)
    parser.add_argument("--repeats", type=int, default=5, help="repetitions of which the best counts (default 5)")
    arguments = parser.parse_args()
    paths = [path for folder in arguments.folders for path in sorted(folder.glob("*.py"))]
    programs = HERE / "programs"
    grid = (programs / "grid.py").read_text()
    with Sandbox() as sandbox:
        report = sandbox.isolation
        print(f"isolation {report.level}, {os.cpu_count()} processors, Python {sys.version.split()[0]}\n")
        table_of_programs(sandbox, paths, arguments.repeats)
        table_of_sessions(sandbox, grid, arguments.repeats)
        table_of_lives(sandbox, grid)
    table_of_workers([programs / "guess.py", programs / "ledger.py", programs / "grid.py"], arguments.repeats)
    table_of_pools(grid)


if __name__ == "__main__":
    main()
