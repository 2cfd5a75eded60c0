"""Import a pool that somebody published, look at what came in, and export it as a data set of your own.

    python examples/import_published_pool.py SPADE-Environments-ToolUse/ --memory runs/pool
    python examples/import_published_pool.py tests/data/llm_style

Every program is validated by running it in the sandbox; what is refused is said with its reason and left out.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from pathlib import Path

from spade_envs.memory import Memory
from spade_envs.pools import export_memory, import_pool, open_pool


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pool", help="a folder with manifest.json or .py files, a table, a .spade file")
    parser.add_argument("--memory", type=Path, help="where the environments go; default: a temporary folder")
    parser.add_argument("--export", type=Path, help="write the pool here as Parquet, manifest, .py files and card")
    parser.add_argument("--jobs", type=int, default=2, help="programs validated at once")
    args = parser.parse_args()

    folder = args.memory or Path(tempfile.mkdtemp(prefix="spade-"))
    pool = open_pool(args.pool)
    print(f"{pool.name}: layout {pool.layout}")
    counts: Counter[str] = Counter()
    with Memory.open(folder) as memory:
        for outcome in import_pool(pool, memory, jobs=args.jobs):
            counts[outcome.status] += 1
            if outcome.status == "refused":
                print(f"  {outcome.label}: {outcome.cause}")
        print(f"{dict(counts)} in {folder}")
        by_skill = Counter(record.skill or "(none)" for record in memory.records())
        print(f"by skill: {dict(by_skill.most_common(6))}")
        if args.export:
            summary = export_memory(memory, args.export)
            print(f"exported {summary.environments} environments to {args.export}")


if __name__ == "__main__":
    main()
