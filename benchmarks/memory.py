"""What the memory costs: median latencies, and as multiples of the bare SQLite statement or FAISS search beneath.

Run: python benchmarks/memory.py [--sizes 100 1000 10000] [--repeats 30]
Programs are made up (about 60 lines each, subject words drawn from a fixed list); each of the newest 200 has 32
plays. Baselines use the same rows, vectors and disk, in the same run, with the same durability (WAL, full sync).
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from spade_envs.memory import Memory, default_embedder
from spade_envs.memory.lexical import words
from spade_envs.record import EnvironmentRecord

_WORDS = (
    "maze auction knapsack cipher garden bridge river market planet engine library orchard harbour circuit puzzle "
    "weather castle recipe chess tower forest island train ladder mirror lantern compass wallet museum factory "
    "traffic molecule bacteria election treaty glacier volcano satellite robot printer elevator theatre violin"
)
_SUBJECTS = _WORDS.split()
_SKILLS = ("Mathematical Reasoning", "Logical Deduction", "Spatial Reasoning", "Pattern Recognition")


def program(rng: random.Random) -> str:
    """A program of about 60 lines whose statements, names and texts vary."""
    subjects = rng.sample(_SUBJECTS, 6)
    lines = ["import random", f"class {subjects[0].title()}Env:", f'    """A game of {" and ".join(subjects)}."""']
    lines += ["    def reset(self, seed=None):", "        self.rng = random.Random(seed)", "        self.turn = 0"]
    for _ in range(24):
        name, other = rng.sample(subjects, 2)
        lines.append(
            rng.choice(
                (
                    f"        self.{name} = [self.rng.random() for _ in range({rng.randint(2, 9)})]",
                    f"        self.{name} = {{'{other}': {rng.randint(1, 99)}, 'turn': self.turn}}",
                    f"        self.{name} = sorted(str({rng.randint(1, 10**6)}) + '{other}')",
                    f"        self.{name} = sum(range({rng.randint(2, 50)})) % {rng.randint(2, 30)}",
                )
            )
        )
    lines += [f"        return 'Find the {subjects[1]} of the {subjects[2]}.', {{}}", "    def step(self, action):"]
    for _ in range(24):
        name = rng.choice(subjects)
        lines.append(
            f"        if action == '{name}' and self.turn {rng.choice('<>')} {rng.randint(0, 9)}: self.turn += 1"
        )
    lines.append("        return '', 0.0, True, False, {}")
    return "\n".join(lines)


def record(rng: random.Random) -> EnvironmentRecord:
    """A record of such a program."""
    return EnvironmentRecord.create(program(rng), "MadeUpEnv", skill=rng.choice(_SKILLS), proven=True)


def median_ms(action: Callable[[int], object], repeats: int) -> float:
    """Median time of ``action(i)`` in milliseconds, after one call that does not count."""
    action(0)
    times = []
    for i in range(1, repeats + 1):
        start = time.perf_counter()
        action(i)
        times.append(time.perf_counter() - start)
    return 1000 * statistics.median(times)


def bare_sqlite(file: Path, records: Sequence[EnvironmentRecord]) -> sqlite3.Connection:
    """The least a store of these sources could be: one table."""
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE bare (id TEXT PRIMARY KEY, name TEXT, source TEXT)")
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO bare VALUES (?, ?, ?)", [(one.id, one.name, one.source) for one in records])
    connection.execute("COMMIT")
    return connection


def measure(size: int, repeats: int) -> list[tuple[str, float, str, float]]:
    """Return rows (operation, its milliseconds, baseline, its milliseconds) at ``size`` records."""
    import faiss

    rng = random.Random(size)
    records = list({one.id: one for one in (record(rng) for _ in range(size))}.values())
    extra = [record(rng) for _ in range(2 * repeats + 2)]
    embedder = default_embedder()
    rows: list[tuple[str, float, str, float]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "pool"
        bare = bare_sqlite(Path(name) / "bare.sqlite", records)
        flat = faiss.IndexFlatIP(embedder.dimension)
        flat.add(embedder.embed([words(one.source) for one in records]))
        with Memory.open(folder) as memory:
            memory.commit_round("benchmark", 0, records)
            for one in records[-200:]:
                memory.record_plays(one.id, [float(rng.random() < 0.5) for _ in range(16)], hinted=False)
                memory.record_plays(one.id, [float(rng.random() < 0.8) for _ in range(16)], hinted=True)
            start = time.perf_counter()
            memory.rebuild_index()
            rebuild = 1000 * (time.perf_counter() - start)

            def insert(i: int) -> None:
                bare.execute("INSERT INTO bare VALUES (?, ?, ?)", (extra[i].id, "MadeUpEnv", extra[i].source))

            insert_ms = median_ms(insert, repeats)
            add_ms = median_ms(lambda i: memory.add(extra[i]), repeats)
            rows.append(("add", add_ms, "INSERT", insert_ms))
            keys = [rng.choice(records).id for _ in range(repeats + 1)]
            select_ms = median_ms(
                lambda i: bare.execute("SELECT source FROM bare WHERE id = ?", (keys[i],)).fetchone(), repeats
            )
            rows.append(("get", median_ms(lambda i: memory.get(keys[i]), repeats), "SELECT one", select_ms))
            window_ms = median_ms(
                lambda i: bare.execute("SELECT source FROM bare ORDER BY rowid DESC LIMIT 200").fetchall(), repeats
            )
            exemplars_ms = median_ms(lambda i: memory.exemplars(_SKILLS[0], random.Random(i)), repeats)
            rows.append(("exemplars", exemplars_ms, "SELECT 200", window_ms))
            names_ms = median_ms(lambda i: bare.execute("SELECT id, name FROM bare").fetchall(), min(repeats, 10))
            rows.append(("ids", median_ms(lambda i: Memory.ids(folder), min(repeats, 10)), "SELECT id, name", names_ms))
            all_ms = median_ms(lambda i: bare.execute("SELECT * FROM bare").fetchall(), 3)
            rows.append(("records", median_ms(lambda i: memory.records(), 3), "SELECT *", all_ms))

            vectors = embedder.embed([words(one.source) for one in extra])
            flat_ms = median_ms(lambda i: flat.search(vectors[i : i + 1], 10), repeats)
            texts = [f"find the {rng.choice(_SUBJECTS)} in the {rng.choice(_SUBJECTS)}" for _ in range(repeats + 1)]
            rows.append(("search", median_ms(lambda i: memory.search(texts[i]), repeats), "FAISS search", flat_ms))
            fresh = [program(rng) for _ in range(repeats + 1)]
            rows.append(
                ("duplicate_of", median_ms(lambda i: memory.duplicate_of(fresh[i]), repeats), "FAISS search", flat_ms)
            )

        def first_search(i: int) -> None:
            with Memory.open(folder) as opened:
                opened.search(texts[i])

        file = next(folder.glob("index-*"))
        load_ms = median_ms(lambda i: np.fromfile(file, dtype=np.uint8), 5)
        rows.append(("open + first search", median_ms(first_search, 5), "read the index file", load_ms))
        start = time.perf_counter()
        fill = faiss.IndexFlatIP(embedder.dimension)
        fill.add(embedder.embed([words(one.source) for one in records]))
        rows.append(("rebuild_index", rebuild, "embed + FAISS add", 1000 * (time.perf_counter() - start)))
        bare.close()
    return rows


def main() -> None:
    """Print one Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1000, 10_000])
    parser.add_argument("--repeats", type=int, default=30)
    options = parser.parse_args()
    print("| records | operation | ms | baseline | ms | ratio |")
    print("|---:|---|---:|---|---:|---:|")
    for size in options.sizes:
        for operation, ms, baseline, base in measure(size, options.repeats):
            print(f"| {size} | {operation} | {ms:.2f} | {baseline} | {base:.3f} | {ms / base:.1f} |", flush=True)


if __name__ == "__main__":
    main()
