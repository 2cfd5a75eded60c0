"""What the memory costs at a size: latencies (median and 95th percentile), sizes, and recall of the index.

Run: python benchmarks/memory.py [--records 1000 10000 100000] [--repeats 200] [--jobs 2] [--folder DIR]
Records are made up (`synthetic_programs.py`: about 110 lines each, half of them played). `--folder` keeps the memories
there, so that a second run need not fill them again. Two baselines show what the disk and a full comparison cost: an
INSERT of the same source into a bare table of as many rows with the same durability, and a flat FAISS search.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from synthetic_programs import SKILLS, near_version, program, record

from spade_envs.memory import Memory, default_embedder
from spade_envs.memory.lexical import words

_PART = 5_000  # records of one seed
_QUERIES = (
    "double auction with hidden reserve",
    "find the exit of a maze",
    "decode a message",
    "schedule trains on one track",
    "who spread the infection",
    "pack the most valuable items",
    "repair a circuit with few parts",
    "balance the ledger of a trader",
    "which witness lies about the weapon",
    "steer a submarine around a reef",
)


def fill(folder: Path, records: int, jobs: int) -> float:
    """Fill a memory by ``jobs`` processes at once; return the seconds it took."""
    start = time.perf_counter()
    with Memory.open(folder):
        pass
    parts = [(folder, seed, min(_PART, records - seed)) for seed in range(0, records, _PART)]
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        pool.starmap(_fill_part, parts, chunksize=1)
    return time.perf_counter() - start


def _fill_part(folder: Path, seed: int, count: int) -> None:
    rng = random.Random(seed)
    with Memory.open(folder) as memory:
        memory.add_many(record(rng) for _ in range(count))


def timed(action: Callable[[int], object], repeats: int) -> str:
    """Return median and 95th percentile of ``action(i)`` by the clock and in this thread on the CPU.

    Three calls do not count. The CPU's share does not wait for the disk or for other programs on a busy machine.
    """
    wall, cpu = [], []
    for i in range(repeats):
        start, busy = time.perf_counter(), time.thread_time()
        action(i)
        cpu.append(1000 * (time.thread_time() - busy))
        wall.append(1000 * (time.perf_counter() - start))
    cells = [f"{np.percentile(times[3:], share):.2f}" for times in (wall, cpu) for share in (50, 95)]
    return " | ".join(cells)


def rss() -> float:
    """Return the resident memory of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def bare_insert(folder: Path, records: int, repeats: int, rng: random.Random) -> str:
    """Return the cost of an INSERT into a bare table of as many sources."""
    file = folder / "bare.sqlite"
    file.unlink(missing_ok=True)
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE bare (id TEXT PRIMARY KEY, source TEXT)")
    source = program(rng)
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO bare VALUES (?, ?)", ((f"{i:064d}", source) for i in range(records)))
    connection.execute("COMMIT")
    extra = [record(rng) for _ in range(repeats)]
    cost = timed(
        lambda i: connection.execute("INSERT INTO bare VALUES (?, ?)", (extra[i].id, extra[i].source)), repeats
    )
    connection.close()
    file.unlink()
    return cost


def recall(memory: Memory, sources: list[str]) -> tuple[float, float, str]:
    """Return recall@10 against a comparison with every vector, for programs and for queries, and what that costs."""
    import faiss

    ids, vectors = memory.vectors()
    flat = faiss.IndexFlatIP(vectors.shape[1])
    flat.add(vectors)
    shares = []
    for texts in (sources, [f"{query} {word}" for query in _QUERIES for word in ("game", "puzzle", "now", "again")]):
        embedded = default_embedder().embed([words(text) for text in texts])
        _, places = flat.search(embedded, 10)
        found = [{one.id for one, _ in memory.search(text, 10)} for text in texts]
        shares.append(
            float(
                np.mean([len(one & {ids[place] for place in row}) / 10 for one, row in zip(found, places, strict=True)])
            )
        )
    return shares[0], shares[1], timed(lambda i: flat.search(embedded[i % len(embedded)][None], 10), 60)


def measure(folder: Path, records: int, repeats: int) -> list[tuple[str, str]]:
    """Return rows (what, how much) of the memory in ``folder``."""
    rng = random.Random(99)
    lines: list[tuple[str, str]] = []

    def latency(name: str, cells: str) -> None:
        lines.append((name, cells))

    def fact(name: str, value: str) -> None:
        lines.append((name, f"{value} | | |"))

    default_embedder()
    import faiss  # noqa: F401

    before = rss()
    start = time.perf_counter()
    with Memory.open(folder) as memory:
        fact("open", f"{1000 * (time.perf_counter() - start):.0f} ms")
        memory.search(_QUERIES[0])
        fact("open and first search", f"{1000 * (time.perf_counter() - start):.0f} ms")
        fact("resident memory, index loaded", f"{rss() - before:.0f} MB more")
        size = len(memory)
        known = memory.records(limit=repeats, newest_first=True)
        extra = [record(rng) for _ in range(repeats)]
        fresh = [program(rng) for _ in range(repeats)]
        versions = [near_version(one.source, rng) for one in known]
        latency("add", timed(lambda i: memory.add(extra[i]), repeats))
        latency(
            "record_plays (8)", timed(lambda i: memory.record_plays(extra[i].id, [1.0, 0.0] * 4, hinted=False), repeats)
        )
        latency("get", timed(lambda i: memory.get(known[i].id), repeats))
        latency("duplicate_of, a new program", timed(lambda i: memory.duplicate_of(fresh[i]), repeats))
        latency("duplicate_of, a near version", timed(lambda i: memory.duplicate_of(versions[i]), repeats))
        latency("search", timed(lambda i: memory.search(_QUERIES[i % len(_QUERIES)], 10), repeats))
        latency("search, of one skill", timed(lambda i: memory.search(_QUERIES[i % 10], 10, skill=SKILLS[1]), repeats))
        for capacity in (200, size):
            memory.capacity = capacity
            latency(
                f"exemplars, newest {capacity}",
                timed(lambda i: memory.exemplars(SKILLS[i % 6], random.Random(i)), repeats),
            )
            latency(
                f"negative, newest {capacity}",
                timed(lambda i: memory.negative(SKILLS[i % 6], random.Random(i)), repeats),
            )
        found = [memory.duplicate_of(version) for version in versions]
        right = sum(one is not None and one.id == of.id for one, of in zip(found, known, strict=True))
        fact("near versions recognised", f"{right} of {len(versions)}")
        alarms = sum(memory.duplicate_of(one) is not None for one in fresh)
        fact("new programs called duplicates", f"{alarms} of {len(fresh)}")
        programs, queries, flat = recall(memory, fresh[:100])
        fact("index", f"{memory.index_kind()}, recall@10 {programs:.3f} (programs), {queries:.3f} (queries)")
        latency("baseline: flat FAISS search", flat)
        start = time.perf_counter()
        memory.rebuild_index()
        fact("rebuild_index", f"{time.perf_counter() - start:.1f} s")
    latency("baseline: bare INSERT", bare_insert(folder, records, repeats, rng))
    for name, pattern in (("database", "memory.sqlite"), ("index file", "index-*")):
        total = sum(file.stat().st_size for file in folder.glob(pattern))
        fact(name, f"{total / 1e6:.0f} MB ({total / size / 1e3:.1f} kB a record)")
    return lines


def main() -> None:
    """Print one Markdown table for each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1, help="processes that fill the memory")
    parser.add_argument("--folder", type=Path, help="keep the memories here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        for records in options.records:
            folder = (options.folder or Path(temporary)) / str(records)
            print(f"\n| {records} records | p50 ms | p95 ms | CPU p50 ms | CPU p95 ms |\n|---|---:|---:|---:|---:|")
            if not (folder / "memory.sqlite").exists():
                seconds = fill(folder, records, options.jobs)
                print(f"| filled by {options.jobs} process(es) | {seconds:.0f} s | | | |", flush=True)
            for name, value in measure(folder, records, options.repeats):
                print(f"| {name} | {value} |", flush=True)


if __name__ == "__main__":
    main()
