"""What the Parquet parts of a run add to its lines: which tokens were trained, and the prompts of programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spade_envs.view.run_files import whole

FOLDER = "transcripts"
_COLUMNS = ("type", "id", "group", "hinted", "number", "seed", "advantage", "mask_runs", "prompt", "reply", "source")
_LARGEST = 256 << 20  # bytes of a part that is looked into


def details(folder: Path, line: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of the part's row that says the same as ``line`` of the transcripts; {} if there is none.

    A row is found by its kind and environment, then by hint, seed and number (episodes) or by its source (programs).
    """
    step, rank = whole(line.get("step")), whole(line.get("rank"))
    path = folder / FOLDER / f"step-{step:06d}-rank-{rank}.parquet"
    if not path.is_file() or path.stat().st_size > _LARGEST:
        return {}
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.read_table(path, columns=list(_COLUMNS))
    except (OSError, pa.ArrowException, KeyError):  # of another layout, or damaged
        return {}
    same = ("hinted", "seed", "number") if line.get("type") == "episode" else ("source",)
    names = ("type", "id", *same)
    wanted = [line.get(name) or None for name in names]
    for place, row in enumerate(table.select(names).to_pylist()):
        if [row[name] or None for name in names] == wanted:
            return dict(table.slice(place, 1).to_pylist()[0])
    return {}


def token_runs(details: dict[str, Any]) -> tuple[list[int], list[int]]:
    """Return the lengths of the runs of tokens that the policy sampled, and of those given between them, in order."""
    runs = [whole(length) for length in details.get("mask_runs") or ()]
    return runs[0::2], runs[1::2]
