"""What a large corpus costs: time to open (index made, index found), peak memory, latency of drawing.

Run: python benchmarks/corpus.py [--documents 1000000] [--words 60] [--formats jsonl zst parquet]
Documents are made up (words drawn from a list of 5,000, so that they are neither equal nor compressible to nothing).
Each measurement is a process of its own; drawing is measured over 2,000 seeded draws after 200 that warm up.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

_MEASURE = """
import json, re, statistics, sys, time
from pathlib import Path
from spade_envs.corpus import Corpus
import pyarrow.parquet
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
before, start, worked = peak(), time.perf_counter(), time.process_time()
corpus = Corpus.open(sys.argv[1], cache=Path(sys.argv[2]))
opened, worked = time.perf_counter() - start, time.process_time() - worked
highest = peak()
times = []
for index in range(2200):
    start = time.perf_counter()
    corpus.sample(0, index)
    times.append(time.perf_counter() - start)
times = sorted(times[200:])
print(json.dumps({"documents": len(corpus), "open_s": opened, "cpu_s": worked, "peak_mib": highest, "bare_mib": before,
    "draw_us": 1e6 * statistics.median(times), "draw_p99_us": 1e6 * times[int(len(times) * 0.99)]}))
"""


def _documents(count: int, words: int) -> Iterator[str]:
    rng = random.Random(0)
    listed = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 10))) for _ in range(5000)]
    return (" ".join(rng.choices(listed, k=words)) for _ in range(count))


def _write(folder: Path, form: str, count: int, words: int) -> Path:
    import pyarrow
    import pyarrow.parquet

    rows = ({"id": f"d{number}", "text": text} for number, text in enumerate(_documents(count, words)))
    if form == "parquet":
        schema = pyarrow.schema([("id", pyarrow.string()), ("text", pyarrow.string())])
        with pyarrow.parquet.ParquetWriter(folder / "corpus.parquet", schema) as writer:
            batch = []
            for row in rows:
                batch.append(row)
                if len(batch) == 100_000:
                    writer.write_table(pyarrow.Table.from_pylist(batch, schema))
                    batch = []
            writer.write_table(pyarrow.Table.from_pylist(batch, schema))
        return folder / "corpus.parquet"
    path = folder / ("corpus.jsonl" if form == "jsonl" else "corpus.jsonl.zst")
    with path.open("wb") if form == "jsonl" else pyarrow.output_stream(str(path), compression="zstd") as file:
        for row in rows:
            file.write(json.dumps(row).encode() + b"\n")
    return path


def main() -> None:
    """Measure and print one row for each format and opening."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--words", type=int, default=60)
    parser.add_argument("--formats", nargs="+", default=["jsonl", "zst", "parquet"])
    args = parser.parse_args()
    print("| format | size MiB | opening | s | CPU s | peak MiB (bare process) | draw µs median | p99 |")
    print("|---|---|---|---|---|---|---|---|")
    for form in args.formats:
        with tempfile.TemporaryDirectory(prefix="spade-corpus-") as name:
            path = _write(Path(name), form, args.documents, args.words)
            for opening in ("first", "again"):
                done = subprocess.run(
                    [sys.executable, "-c", _MEASURE, str(path), str(Path(name) / "cache")],
                    check=True, capture_output=True, text=True,
                )  # fmt: skip
                facts = json.loads(done.stdout)
                assert facts["documents"] == args.documents, facts
                print(
                    f"| {form} | {path.stat().st_size / 2**20:.0f} | {opening} | {facts['open_s']:.2f} | "
                    f"{facts['cpu_s']:.2f} | "
                    f"{facts['peak_mib']:.0f} ({facts['bare_mib']:.0f}) | {facts['draw_us']:.0f} | "
                    f"{facts['draw_p99_us']:.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
