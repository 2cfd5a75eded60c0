"""What the Parquet parts of a run add to its lines: all episodes, which tokens were trained, prompts of programs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from spade_envs.view.run_files import real, whole

if TYPE_CHECKING:
    import pyarrow

FOLDER = "transcripts"
_DETAILS = ("type", "id", "hinted", "number", "seed", "advantage", "mask_runs", "prompt", "reply", "source")
_LISTED = ("type", "id", "hinted", "number", "seed", "turns", "return", "stop")
_LARGEST = 512 << 20  # bytes of a part, unpacked, that is looked into
_NAME = re.compile(r"step-(\d{6,12})-rank-(\d{1,9})\.parquet\Z")


class PartEpisode(NamedTuple):
    """Where an episode stands in a part, with what a list of episodes shows."""

    step: int
    rank: int
    row: int
    key: str
    hinted: bool
    number: int  # among the episodes of its environment; lines of transcripts have the first ones
    seed: int
    turns: int
    return_: float
    stop: str


def details(folder: Path, line: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of the part's row that says the same as ``line`` of the transcripts; {} if there is none.

    A row is found by its kind and environment, then by hint, seed and number (episodes) or by its source (programs).
    """
    table = _table(folder, whole(line.get("step")), whole(line.get("rank")), _DETAILS)
    names = ("type", "id", *(("hinted", "seed", "number") if line.get("type") == "episode" else ("source",)))
    if table is None:
        return {}
    wanted = [line.get(name) or None for name in names]
    for place, row in enumerate(table.select(names).to_pylist()):
        if [row[name] or None for name in names] == wanted:
            return dict(table.slice(place, 1).to_pylist()[0])
    return {}


def episodes(folder: Path, step: int, most: int) -> list[PartEpisode]:
    """Return up to ``most`` episodes of a step that the lines leave out, of all ranks."""
    found: list[PartEpisode] = []
    for path in sorted((folder / FOLDER).glob(f"step-{step:06d}-rank-*.parquet")):
        match = _NAME.match(path.name)
        table = _table(folder, step, int(match[2]), _LISTED) if match else None
        if match is None or table is None:
            continue
        for row, one in enumerate(table.to_pylist()):
            if one["type"] == "episode" and whole(one["number"]) > 0 and len(found) < most:
                figures = (whole(one["seed"]), whole(one["turns"]), real(one["return"]))
                texts = str(one["id"] or ""), str(one["stop"] or "")
                hinted, number = bool(one["hinted"]), whole(one["number"])
                found.append(PartEpisode(step, int(match[2]), row, texts[0], hinted, number, *figures, texts[1]))
    return found


def episode(folder: Path, step: int, rank: int, row: int) -> dict[str, Any]:
    """Return an episode of a part as a line of transcripts.

    Raises:
        LookupError: if there is none.
    """
    table = _table(folder, step, rank, None)
    if table is None or not 0 <= row < table.num_rows:
        raise LookupError(f"no row {row} in the part of step {step} and rank {rank}")
    line = dict(table.slice(row, 1).to_pylist()[0])
    return {**line, "key": line.get("id"), "step": step}


def token_runs(details: dict[str, Any]) -> tuple[list[int], list[int]]:
    """Return the lengths of the runs of tokens that the policy sampled, and of those given between them, in order."""
    runs = [whole(length) for length in details.get("mask_runs") or ()]
    return runs[0::2], runs[1::2]


def _table(folder: Path, step: int, rank: int, columns: Sequence[str] | None) -> pyarrow.Table | None:
    """The part of a step and rank, all columns if None are named; None if it is missing, damaged or too large."""
    path = folder / FOLDER / f"step-{step:06d}-rank-{rank}.parquet"
    if step < 0 or rank < 0 or not path.is_file():
        return None
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            about = file.metadata
            if sum(about.row_group(group).total_byte_size for group in range(about.num_row_groups)) > _LARGEST:
                return None
            table = file.read(columns=None if columns is None else list(columns))
            return table if columns is None else table.select(list(columns))
    except (OSError, KeyError, pa.ArrowException):  # of another layout, or damaged
        return None
