"""What validating one environment costs: CPU and wall-clock by stage, and against the same operations in process.

    python benchmarks/validation.py [--repeat N] [FILE|DIR …]

CPU time is that of the caller, the fork servers and the workers together (what the kernel spends on ending a worker
is not in it). Each program is validated ``--repeat`` times and the smallest CPU time counts, since other load on the
machine only adds to it; wall-clock is the smallest too. The comparison in process is for the programs of the tests
alone: others are not trusted.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import random
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spade_envs.contract import TextEnv, ToolEnv
from spade_envs.sandbox import Operation, Outcome, Program, Sandbox
from spade_envs.validation import iter_sources, validate

DATA = Path(__file__).parent.parent / "tests" / "data"
OWN = [DATA / "validation" / "sound", DATA / "llm_style"]
_CPU_CLOCK = 2  # of a process, all its threads together


def process_cpu(pid: int) -> float:
    """CPU seconds of another process, all its threads."""
    return time.clock_gettime((~pid << 3) | _CPU_CLOCK)


class MeteredSandbox(Sandbox):
    """A sandbox that keeps the CPU time of its workers by stage, and the operations that were asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.reset()

    def reset(self) -> None:
        """Start with the next program."""
        self.worker_cpu = {"start": 0.0, "run": 0.0}
        self.start_wall = 0.0
        self.round_trips = 0
        self.operations: list[Operation] = []

    def open(self, source: str, *, allow: Sequence[str] = (), twin: bool = False, shared: bool = False) -> Program:
        """Open, and note what starting the worker and loading took."""
        began = time.perf_counter()
        program = super().open(source, allow=allow, twin=twin, shared=shared)
        self.start_wall += time.perf_counter() - began
        worker = program.seat.worker
        started = process_cpu(worker.pid) if worker else 0.0
        self.worker_cpu["start"] += started
        close = program.close

        def metered_close() -> None:
            if program.seat.worker is not None:
                self.worker_cpu["run"] += process_cpu(program.seat.worker.pid) - started
            close()

        program.close = metered_close  # type: ignore[method-assign]
        return program

    def run_many(self, batches: Sequence[tuple[Program, Sequence[Operation]]]) -> list[list[Outcome]]:
        """Run, and note the operations."""
        self.round_trips += 1
        for program, operations in batches:
            self.operations += [operation for operation in operations if not program.twin]
        return super().run_many(batches)

    def zygote_cpu(self) -> float:
        """CPU seconds of the fork servers so far."""
        return sum(process_cpu(zygote.pid) for zygote in self._processes._zygotes.values())


def in_process_cpu(source: str, operations: Sequence[Operation]) -> float | None:
    """CPU seconds of the same operations under plain Python, None if the program needs more than plain Python."""
    names: dict[str, Any] = {"__name__": "program", "TextEnv": TextEnv, "ToolEnv": ToolEnv, "ToolUseBaseEnv": ToolEnv}
    began = time.process_time()
    try:
        exec("import random, re, math, json, itertools, collections\nfrom typing import *", names)
        before = set(names)
        exec(compile(source, "program", "exec"), names)
        made = [value for name, value in names.items() if name not in before and name.endswith("Env")]
        sessions: dict[int, Any] = {}
        for name, session, argument in operations:
            with contextlib.suppress(Exception):
                if name == "make":
                    random.seed(0)
                    sessions[session] = made[-1]()
                elif name == "sibling":
                    random.seed(0)
                    sessions[argument] = made[-1]()
                elif name == "reset":
                    random.seed(argument)
                    sessions[session].reset(seed=argument)
                elif name == "step":
                    sessions[session].step(argument)
                elif name in ("hint", "solution"):
                    getattr(sessions[session], name)()
    except Exception:
        return None
    return time.process_time() - began


def measure(sandbox: MeteredSandbox, source: str, *, trusted: bool) -> dict[str, float]:
    """One validation: milliseconds by part; ``trusted`` programs are run in this process too, for comparison."""
    sandbox.reset()
    zygotes, caller, wall = sandbox.zygote_cpu(), time.process_time(), time.perf_counter()
    report = validate(source, sandbox=sandbox)
    wall, caller = time.perf_counter() - wall, time.process_time() - caller
    zygotes = sandbox.zygote_cpu() - zygotes
    stages = report.measures.get("milliseconds", {})
    seconds = {
        "cpu": caller + zygotes + sum(sandbox.worker_cpu.values()),
        "cpu: caller": caller,
        "cpu: forks": zygotes,
        "cpu: worker start, load": sandbox.worker_cpu["start"],
        "cpu: worker episodes": sandbox.worker_cpu["run"],
        "wall": wall,
        "wall: worker start, load": sandbox.start_wall,
        "wall: episodes": max(0.0, stages.get("load", 0.0) + stages.get("collect", 0.0)) / 1000 - sandbox.start_wall,
        "wall: findings": stages.get("probes", 0.0) / 1000,
    }
    values = {name: 1000 * value for name, value in seconds.items()}
    values["round trips"] = float(sandbox.round_trips)
    values["operations"] = float(len(sandbox.operations))
    plain = in_process_cpu(source, sandbox.operations) if trusted else None
    values["plain"] = 1000 * plain if plain else float("nan")
    return values


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", help="programs; those of the tests if none are named")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    rows: list[dict[str, float]] = []
    sandbox = MeteredSandbox()
    with sandbox:
        sources = list(iter_sources(options.paths or OWN))
        validate(sources[0][1], sandbox=sandbox)
        for _, source in sources:
            runs = [measure(sandbox, source, trusted=not options.paths) for _ in range(options.repeat)]
            rows.append({name: min(run[name] for run in runs) for name in runs[0]})
    print(f"{len(rows)} programs, {options.repeat} times each, {os.cpu_count()} processors; milliseconds")
    print(f"{'':26}{'median':>9}{'p90':>9}{'mean':>9}")
    for name in rows[0]:
        values = sorted(row[name] for row in rows if not math.isnan(row[name]))
        if len(values) < 2:
            continue
        p90 = statistics.quantiles(values, n=10)[-1]
        print(f"{name:26}{statistics.median(values):9.1f}{p90:9.1f}{statistics.fmean(values):9.1f}")
    ratios = [row["cpu"] / row["plain"] for row in rows if not math.isnan(row["plain"])]
    if ratios:
        ratio = statistics.median(ratios)
        print(f"\nCPU against the same operations in process: {ratio:.1f}x (median, {len(ratios)} programs)")


if __name__ == "__main__":
    main()
