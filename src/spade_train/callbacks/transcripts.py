"""Transcripts on disk: lines to read in ``transcripts.jsonl``, everything in Parquet parts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback

from spade_train.callbacks.files import append_lines, keep_steps
from spade_train.transcripts import cycle_records, readable
from spade_train.trl_adapter import gather

if TYPE_CHECKING:
    from spade_train.selfplay import SelfPlay

TRANSCRIPTS_FILE = "transcripts.jsonl"
TRANSCRIPTS_FOLDER = "transcripts"
_PART = re.compile(r"step-(\d+)-rank-(\d+)\.parquet(\.tmp)?\Z")
_NOT_IN_LINES = ("prompt", "reply", "mask_runs", "prompt_ids", "completion_ids")


class TranscriptsCallback(TrainerCallback):  # type: ignore[misc]
    """Keeps what was written and played.

    ``transcripts.jsonl`` has the programs and the first plain and hinted episode of each environment, of all ranks;
    ``transcripts/`` has everything, one Parquet file for each step and rank, written whole: a kill loses one step.
    """

    def __init__(self, session: SelfPlay, *, lines: bool, parts: bool, ids: bool = False) -> None:
        self._session, self._lines, self._parts, self._ids = session, lines, parts, ids

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Drop what will be run again."""
        if args.process_index == 0:
            keep_steps(Path(args.output_dir) / TRANSCRIPTS_FILE, state.global_step)
            for path in (Path(args.output_dir) / TRANSCRIPTS_FOLDER).glob("*"):
                match = _PART.match(path.name)
                if match and (int(match[1]) > state.global_step or match[3]):
                    path.unlink()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Write the transcripts of the step that has just been committed; collective."""
        from accelerate import PartialState

        folder, rank = Path(args.output_dir), args.process_index
        records = [
            record
            for step, cycle in self._session.latest
            for record in cycle_records(cycle, step=step, rank=rank, decode=self._decode, ids=self._ids)
        ]
        if self._parts:
            write_part(folder / TRANSCRIPTS_FOLDER / f"step-{state.global_step:06d}-rank-{rank}.parquet", records)
        if self._lines:
            ranks = gather(PartialState(), [_line(record) for record in records if readable(record)])
            if rank == 0:
                append_lines(folder / TRANSCRIPTS_FILE, [line for lines in ranks for line in lines])

    def _decode(self, ids: Iterable[int]) -> str:
        return str(self._session.rollout.tokens.tokenizer.decode(list(ids)))


def _line(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in _NOT_IN_LINES}


@lru_cache(maxsize=1)
def part_schema() -> Any:
    """Return the columns of a Parquet part; see docs/training.md."""
    import pyarrow as pa

    columns = (
        (pa.string(), "type role group id skill document status cause reason name source prompt reply hint stop error"),
        (pa.int32(), "step rank tokens copies number turns"),
        (pa.int64(), "seed"),
        (pa.float64(), "reward advantage return"),
        (pa.bool_(), "hinted fresh"),
        (pa.list_(pa.int32()), "mask_runs prompt_ids completion_ids"),
        (pa.list_(pa.float64()), "plain hinted_returns rewards"),
        (pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())])), "messages"),
    )
    return pa.schema([(name, kind) for kind, names in columns for name in names.split()])


def write_part(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write records as one Parquet file, which appears whole or not at all."""
    import pyarrow as pa
    from pyarrow import parquet

    schema = part_schema()
    rows = [_row(record) for record in records]
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.tmp")
    parquet.write_table(pa.Table.from_pylist(rows, schema=schema), temporary, compression="zstd")
    temporary.replace(path)


def read_parts(folder: str | Path) -> Any:
    """Return a run's Parquet transcripts as one ``pyarrow.Table``, in order of steps and ranks; empty without any."""
    import pyarrow as pa
    from pyarrow import parquet

    paths = [path for path in (Path(folder) / TRANSCRIPTS_FOLDER).glob("*.parquet") if _PART.match(path.name)]
    order = sorted(paths, key=lambda path: [int(number) for number in re.findall(r"\d+", path.name)])
    schema = part_schema()
    return pa.concat_tables([schema.empty_table(), *(parquet.read_table(path, schema=schema) for path in order)])


def _row(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record as a row: texts that no UTF-8 file can hold are escaped, the list of hinted returns has its own name."""
    row = dict(record)
    if row["type"] in ("design", "late_design"):
        row["hinted_returns"], row["hinted"] = row["hinted"], None
    return {name: _encodable(value) for name, value in row.items()}


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [{name: _encodable(part) for name, part in one.items()} for one in value]
    return value
