"""What the browser view costs on a large memory: first page and filters, against the bare query.

Run: python benchmarks/view.py [--records 10000] [--repeats 20] [--folder DIR]
Records are made up (`synthetic_programs.py`), half of them with statistics, a third with plays besides. `spade view`
runs as a process of its own and is asked over HTTP. The first page is measured from the start of the process, with all
imports and the opening of the memory. A filter's bare query is what SQLite takes for the same records, sorted and cut
to 50 rows, on a connection of its own. CPU is that of the server's process, and of the query's thread: it does not wait
for other programs on a busy machine.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import httpx
from synthetic_programs import SKILLS

from memory import fill
from spade_envs.memory import Memory

SUMS = (
    "LEFT JOIN (SELECT record, SUM(hinted = 0) AS n, SUM(value >= .99 AND hinted = 0) AS wins"
    " FROM plays GROUP BY record) ON record = records.seq"
)
RATE = "(COALESCE(wins, 0) + plain_wins) * 1.0 / (COALESCE(n, 0) + plain_plays)"
PAGE = f"SELECT id, name, skill, kind, generator, {RATE} AS rate FROM records {SUMS} WHERE archived_at IS NULL"
FILTERS = {
    "newest": ("", f"{PAGE} ORDER BY seq DESC LIMIT 50", ()),
    "one skill": (f"skill={SKILLS[0]}", f"{PAGE} AND skill = ? ORDER BY seq DESC LIMIT 50", (SKILLS[0],)),
    "learnable": ("played=learnable", f"{PAGE} AND rate BETWEEN .2 AND .8 ORDER BY seq DESC LIMIT 50", ()),
    "by win rate": ("sort=win", f"{PAGE} ORDER BY rate DESC LIMIT 50", ()),
    "a word": (
        "text=submarine",
        f"{PAGE} AND seq IN (SELECT seq FROM signatures WHERE instr(words, ?)) ORDER BY seq DESC LIMIT 50",
        ("submarine",),
    ),
}


PAGES = {
    "the whole first page": "pool",
    "by meaning": "pool/table?text=a+boat+under+water&meaning=1",
    "distributions": "pool/plots",
    "map": "pool/map",
    "near-duplicates": "pool/twins",
}


def prepare(folder: Path, records: int) -> None:
    """Fill the memory, give a third of it plays, and save its index."""
    if not (folder / "memory.sqlite").is_file():
        fill(folder, records, 1)
    with Memory.open(folder) as memory:
        if "plays" not in memory.runs():
            rng = random.Random(0)
            plays = [
                (one.id, [float(rng.random() < 0.4) for _ in range(8)], hinted)
                for one in memory.records()[::3]
                for hinted in (False, True)
            ]
            memory.commit_round("plays", 0, [], plays=plays)
        memory.search("anything", 1)


def took(action: Callable[[], object], repeats: int, cpu: Callable[[], float]) -> tuple[float, float]:
    """Return (median by the clock, mean on the CPU) of ``action`` in milliseconds, the first two calls left out."""
    times = []
    for call in range(repeats + 2):
        if call == 2:
            busy = cpu()
        began = time.perf_counter()
        action()
        times.append(1000 * (time.perf_counter() - began))
    return median(times[2:]), 1000 * (cpu() - busy) / repeats


def cpu_of(process: subprocess.Popen[str]) -> Callable[[], float]:
    """Return what tells the CPU seconds of a process."""
    path = Path(f"/proc/{process.pid}/stat")

    def seconds() -> float:
        fields = path.read_text(encoding="ascii").rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    return seconds


def start(folder: Path) -> tuple[subprocess.Popen[str], str, float]:
    """Start a server; return it, its address and the seconds until the first page was there."""
    command = [sys.executable, "-m", "spade_envs.cli.app", "view", "--memory", str(folder), "--no-browser", "--json"]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    text = ""
    while not text.rstrip().endswith("}"):
        text += process.stdout.readline()
    address = json.loads(text)["address"]
    httpx.get(f"{address}pool", timeout=120).raise_for_status()
    return process, address, time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary) / "pool"
        prepare(folder, arguments.records)
        measure(folder, arguments.records, arguments.repeats)


def measure(folder: Path, records: int, repeats: int) -> None:
    """Print the table."""
    bare = sqlite3.connect(f"file:{folder / 'memory.sqlite'}?mode=ro", uri=True)
    firsts = []
    for _ in range(3):
        process, address, first = start(folder)
        server = cpu_of(process)
        firsts.append((server(), first))
        if len(firsts) < 3:
            process.terminate()
            process.wait()
    busy, first = min(firsts)
    print(f"{records} records; first page {first:.2f} s after the start of the process, {busy:.2f} s of CPU\n")
    print("| page | ms | CPU ms | bare query ms | CPU ms | ratio of CPU |\n|---|---|---|---|---|---|")
    with httpx.Client(timeout=120) as client:

        def ask(path: str) -> Callable[[], object]:
            return lambda: client.get(address + path).raise_for_status()

        def run(sql: str, values: tuple[str, ...]) -> Callable[[], object]:
            return lambda: bare.execute(sql, values).fetchall()

        try:
            for name, (query, sql, values) in FILTERS.items():
                page, page_cpu = took(ask(f"pool/table?{query}"), repeats, server)
                bare_time, bare_cpu = took(run(sql, values), repeats, time.thread_time)
                print(f"| {name} | {page:.1f} | {page_cpu:.1f} | {bare_time:.1f} | {bare_cpu:.1f} |", end="")
                print(f" {page_cpu / bare_cpu:.2f} |")
            for name, path in PAGES.items():
                page, page_cpu = took(ask(path), max(3, repeats // 4), server)
                print(f"| {name} | {page:.1f} | {page_cpu:.1f} | | | |")
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
