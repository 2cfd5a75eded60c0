"""Long run with hostile programs among healthy ones: python benchmarks/soak.py [--episodes N] [--json]

Rounds of 64 sessions through the public interface, as a trainer uses it: programs are opened and closed all the time,
some are parked longer than there is room for workers and revived, and one session in twenty belongs to a program that
does its worst. At intervals the memory of the caller, of its fork servers and of a worker that lives through the whole
run is taken down, with processes, zombies, descriptors, bookkeeping, and the time of a healthy step. The exit code is
1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

from soak_programs import HOSTILE, WIRE_JUNK, healthy

from spade_envs.sandbox import Limits, Operation, Program, ProgramError, Sandbox, process

SESSIONS, PROGRAMS, LASTING, PARKED, WORKERS = 64, 8, 4, 8, 16
SHARE_HOSTILE = 0.05
LIMITS = Limits(
    soft_seconds=0.05, hard_seconds=0.1, load_seconds=0.5, memory_mb=48, max_observation_chars=4_096, quarantine_after=2
)
BAR_MEMORY, BAR_SPEED = 1.05, 0.9
REAPED_SECONDS = 3.0
WARM_UP = 0.1  # of the episodes, before memory counts
OPEN_BOOTSTRAP = Path(__file__).resolve().parents[1] / "tests" / "sandbox" / "conformance" / "open_bootstrap.py"


@dataclass
class Sample:
    """What was held at one moment; sizes in KiB, time in microseconds per healthy step."""

    episodes: int
    caller_kb: int
    zygote_kb: int
    worker_kb: int  # of the program that is open from the beginning to the end
    processes: int  # below the caller, at all depths
    zombies: int
    caller_descriptors: int
    zygote_descriptors: int
    programs: int  # with a place in the pool
    sessions: int  # in journals
    step_us: list[float] = field(default_factory=list)  # of each round since the sample before


class Unrestricted(Sandbox):
    """A sandbox that runs sources without policy and guards, so that programs reach the wire: the attacker's."""

    def __init__(self) -> None:
        super().__init__(LIMITS, max_workers=4)
        original = process.ZygoteProcess._start
        process.ZygoteProcess._start = staticmethod(_start_unrestricted)
        try:
            self._processes.zygote((False, ()))
        finally:
            process.ZygoteProcess._start = staticmethod(original)


def _start_unrestricted(descriptor: int, log: object, _optional: object) -> subprocess.Popen[bytes]:
    product = str(Path(process.__file__).resolve().parent)
    path = [entry for entry in sys.path if os.path.isabs(entry) and os.path.exists(entry)]
    start = [sys.executable, "-s", "-P", str(OPEN_BOOTSTRAP)]
    return subprocess.Popen(
        [*start, "full", str(descriptor), str(os.getpid()), product, "", *path],
        pass_fds=[descriptor],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=log,
        env=process._ENVIRONMENT,
        cwd="/",
    )


def status_of(pid: int, name: str) -> str:
    """Return one field of ``/proc/PID/status``, "" if the process is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return ""
    return next((line.split()[1] for line in lines if line.startswith(f"{name}:")), "")


def resident_kb(pid: int) -> int:
    """Return the resident memory of a process in KiB, 0 if it is gone."""
    return int(status_of(pid, "VmRSS") or 0)


def descendants(pid: int) -> list[int]:
    """Return every process below ``pid``."""
    parents: dict[int, list[int]] = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        parent = status_of(int(entry), "PPid")
        if parent:
            parents.setdefault(int(parent), []).append(int(entry))
    found, todo = [], [pid]
    while todo:
        children = parents.get(todo.pop(), [])
        found += children
        todo += children
    return found


class Soak:
    """The run: its sandboxes, its open programs and what was measured."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.sandbox = Sandbox(LIMITS, max_workers=WORKERS)
        self.attacker = Unrestricted()
        self.variants = itertools.count()
        self.programs = [self.open_healthy() for _ in range(PROGRAMS)]
        self.parked = [(program, program.session()) for program in (self.open_healthy() for _ in range(PARKED))]
        for _, session in self.parked:
            session.reset(1)
        self.numbers = itertools.count(1)
        self.episodes = self.steps = self.owed = 0.0
        self.outcomes: dict[str, Counter[str]] = {kind: Counter() for kind in (*HOSTILE, "wire junk", "healthy")}
        self.step_us: list[float] = []
        self.samples: list[Sample] = []

    def open_healthy(self) -> Program:
        """Open the next variant of a healthy program."""
        return self.sandbox.open(healthy(next(self.variants)))

    def round(self) -> None:
        """Play 64 sessions to their end, the hostile ones first and together with healthy ones."""
        self.owed += SESSIONS * SHARE_HOSTILE
        hostile = int(self.owed)
        self.owed -= hostile
        each = {program: [next(self.numbers) for _ in range(SESSIONS // PROGRAMS)] for program in self.programs}
        for _ in range(hostile):
            each[self.random.choice(self.programs)].pop()
        self.begin(each, [self.open_hostile(self.random.choice(list(HOSTILE))) for _ in range(hostile)])
        if self.random.random() < 0.25:
            self.junk()
        self.finish(each)
        self.revive()
        self.replace()
        self.episodes += SESSIONS

    def open_hostile(self, kind: str) -> tuple[str, Program | None]:
        """Open a hostile program; some are refused or fail already here."""
        try:
            return kind, self.sandbox.open(HOSTILE[kind])
        except ProgramError as error:
            self.outcomes[kind][type(error).__name__] += 1
            return kind, None

    def begin(self, each: dict[Program, list[int]], hostile: list[tuple[str, Program | None]]) -> None:
        """Make and reset every healthy session; play the hostile ones whole in the same calls."""
        attackers = [(kind, program) for kind, program in hostile if program is not None]
        attack = [Operation("make", 1), Operation("reset", 1, 1), *[Operation("step", 1, "go")] * 4]
        batches = [
            (program, [*(Operation("make", n) for n in numbers), *(Operation("reset", n, n) for n in numbers)])
            for program, numbers in each.items()
        ]
        answers = self.sandbox.run_many([*batches, *((program, attack) for _, program in attackers)])
        self.count(answers[: len(batches)])
        for (kind, program), outcomes in zip(attackers, answers[len(batches) :], strict=True):
            worst = next((outcome.error for outcome in outcomes if outcome.error is not None), None)
            self.outcomes[kind][type(worst).__name__ if worst else "none"] += 1
            if self.random.random() < 0.5:  # the others are dropped: finalisers have to do it
                program.close()

    def count(self, answers: list[list]) -> None:
        """Take down what healthy programs got; anything but an answer is a fault of the sandbox."""
        for outcome in itertools.chain.from_iterable(answers):
            if outcome.error is not None:
                self.outcomes["healthy"][type(outcome.error).__name__] += 1

    def finish(self, each: dict[Program, list[int]]) -> None:
        """Step the healthy sessions to the end of their episodes, with nothing hostile beside them; time it."""
        alive, steps, begin = {program: list(numbers) for program, numbers in each.items()}, 0, time.perf_counter()
        while alive:
            batches = [(program, [Operation("step", n, "7") for n in numbers]) for program, numbers in alive.items()]
            answers = self.sandbox.run_many(batches)
            self.count(answers)
            for (program, operations), outcomes in zip(batches, answers, strict=True):
                steps += len(outcomes)
                alive[program] = [
                    operation.session
                    for operation, outcome in zip(operations, outcomes, strict=True)
                    if outcome.error is None and not outcome.value.terminated
                ]
            alive = {program: numbers for program, numbers in alive.items() if numbers}
        self.step_us.append((time.perf_counter() - begin) / steps * 1e6)
        self.steps += steps
        self.count(
            self.sandbox.run_many([(program, [Operation("close", n) for n in ns]) for program, ns in each.items()])
        )

    def junk(self) -> None:
        """Let a program write to its wire."""
        program = self.attacker.open(self.random.choice(WIRE_JUNK))
        outcomes = program.run([Operation("make", 1), Operation("reset", 1, 1), Operation("step", 1, "go")])
        self.outcomes["wire junk"][type(outcomes[-1].error).__name__] += 1
        program.close()

    def revive(self) -> None:
        """Use a parked program: there is no room for all of them, so its worker was stopped in between."""
        program, session = self.random.choice(self.parked)
        try:
            result = session.step("7")
            if result.terminated:
                session.reset(self.random.randrange(1000))
        except ProgramError as error:
            self.outcomes["healthy"][f"parked: {type(error).__name__}"] += 1
            self.parked.remove((program, session))
            replacement = self.open_healthy()
            self.parked.append((replacement, replacement.session()))
            self.parked[-1][1].reset(1)

    def replace(self) -> None:
        """Close one healthy program and open another one; half of them stay open for the whole run."""
        place = self.random.randrange(LASTING, PROGRAMS)
        self.programs[place].close()
        self.programs[place] = self.open_healthy()

    def measure(self) -> None:
        """Take a sample."""
        gc.collect()
        until = time.monotonic() + REAPED_SECONDS
        while any(status_of(pid, "State") == "Z" for pid in descendants(os.getpid())) and time.monotonic() < until:
            time.sleep(0.05)
        zygotes = [z.pid for box in (self.sandbox, self.attacker) for z in box._processes._zygotes.values()]
        below = descendants(os.getpid())
        worker = self.programs[0].seat.worker
        open_programs = [*self.programs, *(program for program, _ in self.parked)]
        self.samples.append(
            Sample(
                episodes=int(self.episodes),
                caller_kb=resident_kb(os.getpid()),
                zygote_kb=sum(map(resident_kb, zygotes)),
                worker_kb=resident_kb(worker.pid) if worker else 0,
                processes=len(below),
                zombies=sum(status_of(pid, "State") == "Z" for pid in below),
                caller_descriptors=len(os.listdir("/proc/self/fd")),
                zygote_descriptors=sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in zygotes),
                programs=len(self.sandbox._processes._seats) + len(self.attacker._processes._seats),
                sessions=sum(len(program.journal._logs) for program in open_programs),
                step_us=self.step_us,
            )
        )
        self.step_us = []

    def close(self) -> int:
        """Stop everything; return how many processes are left."""
        self.sandbox.close()
        self.attacker.close()
        return len(descendants(os.getpid()))


def judge(soak: Soak, left: int) -> dict[str, tuple[str, bool]]:
    """Return the bars: what was measured in words, and whether it is good enough."""
    samples = soak.samples
    total = samples[-1].episodes
    warm = [sample for sample in samples if sample.episodes >= WARM_UP * total]
    first, last = warm[0], warm[-1]
    rounds = [us for sample in samples for us in sample.step_us]
    early, late = rounds[: len(rounds) // 5], rounds[-(len(rounds) // 5) :]
    speed = statistics.median(early) / statistics.median(late)
    fastest = statistics.quantiles(early, n=10)[0] / statistics.quantiles(late, n=10)[0]
    bars = {}
    for name, attribute in (("caller", "caller_kb"), ("fork servers", "zygote_kb"), ("lasting worker", "worker_kb")):
        growth = getattr(last, attribute) / max(1, getattr(first, attribute))
        bars[f"memory of {name}"] = (f"{(growth - 1) * 100:+.1f} % since warm-up, at most +5 %", growth <= BAR_MEMORY)
    limit = WORKERS + 4 + 2
    most = max(sample.processes for sample in samples)
    bars["processes"] = (f"{most} at most, {limit} allowed; {left} after closing", most <= limit and left == 0)
    zombies = max(sample.zombies for sample in samples)
    bars["zombies"] = (f"{zombies} for longer than {REAPED_SECONDS:g} s", zombies == 0)
    for name, attribute in (("caller", "caller_descriptors"), ("fork servers", "zygote_descriptors")):
        values = [getattr(sample, attribute) for sample in warm]
        spread = WORKERS * 2 if name == "caller" else 0
        bars[f"descriptors of {name}"] = (f"{min(values)} to {max(values)}", max(values) - min(values) <= spread)
    held = PROGRAMS + PARKED
    most = max(sample.programs for sample in samples)
    bars["programs held"] = (f"{most} at most, {held} are open", most <= held)
    most = max(sample.sessions for sample in samples)
    bars["sessions held"] = (f"{most} at most, {PARKED} are open", most <= PARKED)
    faults = sum(soak.outcomes["healthy"].values())
    bars["healthy programs"] = (f"{faults} operations failed", faults == 0)
    text = f"last fifth to first {speed:.2f} (median), {fastest:.2f} (fastest tenth), at least {BAR_SPEED}"
    bars["speed of healthy steps"] = (text, max(speed, fastest) >= BAR_SPEED)
    return bars


COLUMNS = {
    "episodes": "episodes",
    "caller MB": "caller_kb",
    "zygotes MB": "zygote_kb",
    "worker MB": "worker_kb",
    "processes": "processes",
    "zombies": "zombies",
    "fds": "caller_descriptors",
    "zygote fds": "zygote_descriptors",
    "programs": "programs",
    "sessions": "sessions",
}


def print_report(soak: Soak, bars: dict[str, tuple[str, bool]], seconds: float) -> None:
    """Print the samples, what became of the hostile programs, and the verdict."""
    print("".join(f"{title:>11}" for title in COLUMNS) + "   us a step")
    for sample in soak.samples:
        cells = (getattr(sample, name) for name in COLUMNS.values())
        texts = (f"{c / 1024:.1f}" if n.endswith("_kb") else str(c) for n, c in zip(COLUMNS.values(), cells))
        speed = f"{statistics.median(sample.step_us):12.1f}" if sample.step_us else ""
        print("".join(f"{text:>11}" for text in texts) + speed)
    print("\nwhat became of them")
    for kind, outcomes in soak.outcomes.items():
        if outcomes:
            print(f"  {kind:28} " + ", ".join(f"{name} {count}" for name, count in outcomes.most_common()))
    print(f"\n{soak.samples[-1].episodes} episodes, {int(soak.steps)} healthy steps, {seconds:.0f} s")
    for name, (text, good) in bars.items():
        print(f"  {'ok  ' if good else 'FAIL'} {name:26} {text}")


def main() -> int:
    """Run it; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=200_000)
    parser.add_argument("--samples", type=int, default=20, help="measurements after the first")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="print the samples and the bars as JSON")
    options = parser.parse_args()
    begin = time.monotonic()
    soak = Soak(options.seed)
    soak.measure()
    for number in range(1, options.samples + 1):
        while soak.episodes < options.episodes * number / options.samples:
            soak.round()
        soak.measure()
        print(f"{soak.episodes:.0f} episodes, {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    bars = judge(soak, soak.close())
    if options.json:
        samples = [asdict(sample) for sample in soak.samples]
        print(json.dumps({"samples": samples, "bars": bars, "outcomes": soak.outcomes}))
    else:
        print_report(soak, bars, time.monotonic() - begin)
    return 0 if all(good for _, good in bars.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
