"""Transcripts: the same story in lines and in Parquet, whole after a kill, with what the update saw."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tinyrun
from hypothesis import given
from hypothesis import strategies as st

from spade_train.callbacks import TRANSCRIPTS_FILE, TranscriptsCallback, read_metrics, read_parts
from spade_train.callbacks.transcripts import part_schema, write_part
from spade_train.config import ConfigError
from spade_train.transcripts import mask_runs


@pytest.fixture(scope="module")
def table(finished_run: Path) -> list[dict[str, Any]]:
    return list(read_parts(finished_run).to_pylist())


def _lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / TRANSCRIPTS_FILE).read_text().splitlines()]


@given(st.lists(st.integers(0, 1)))
def test_mask_runs_say_the_mask(mask: list[int]) -> None:
    runs = mask_runs(mask)
    assert [1 - place % 2 for place, length in enumerate(runs) for _ in range(length)] == mask
    assert all(runs[1:])


def test_lines_and_parts_tell_the_same(finished_run: Path, table: list[dict[str, Any]]) -> None:
    lines = _lines(finished_run)
    first = [row for row in table if row["type"] == "design" or (row["type"] == "episode" and row["number"] == 0)]
    assert len(lines) == len(first) > 8
    for line, row in zip(lines, first):
        both = ("step", "rank", "type", "role", "group", "id", "reward", "advantage", "tokens")
        assert [line[name] for name in both] == [row[name] for name in both]
        if row["type"] == "episode":
            assert (line["messages"], line["return"], line["seed"]) == (row["messages"], row["return"], row["seed"])
        else:
            assert (line["source"], line["hinted"], line["cause"]) == (
                row["source"], row["hinted_returns"], row["cause"],
            )  # fmt: skip


def test_trained_rows_are_those_of_the_update(finished_run: Path, table: list[dict[str, Any]]) -> None:
    for line in read_metrics(finished_run):
        rows = [row for row in table if row["step"] == line["step"]]
        plain = [row for row in rows if row["type"] == "episode" and not row["hinted"]]
        assert sum(row["tokens"] for row in plain) == line["tokens/agent"]
        assert all(row["mask_runs"] and row["advantage"] is not None for row in plain)
        assert sum(sum(row["mask_runs"][::2]) for row in plain) == line["tokens/agent"]
        hinted = [row for row in rows if row["type"] == "episode" and row["hinted"]]
        assert all(row["advantage"] is None and not row["mask_runs"] for row in hinted)
        groups: dict[tuple[str, str], float] = {}
        for row in rows:
            if row["advantage"] is not None:
                key = row["role"], row["group"]
                groups[key] = groups.get(key, 0.0) + row["advantage"]
        assert groups
        assert all(abs(total) < 1e-5 for total in groups.values())


@pytest.mark.parametrize(
    ("value", "lines", "parts"), [("jsonl", 1, 0), ("parquet", 0, 1), ("off", 0, 0), (False, 0, 0)]
)
def test_what_is_asked_for_is_written(tmp_path: Path, value: object, lines: int, parts: int) -> None:
    with tinyrun.tiny_training(tmp_path / "run", 1, transcripts=value, transcript_ids=True) as training:
        training.trainer.train()
        batch = training.session.latest[0][1].rows
    assert (tmp_path / "run" / TRANSCRIPTS_FILE).is_file() == bool(lines)
    rows = read_parts(tmp_path / "run").to_pylist()
    assert bool(rows) == bool(parts)
    kept = [(row["prompt_ids"], row["completion_ids"]) for row in rows if row["mask_runs"]]
    assert kept == [(row.prompt_ids, row.completion_ids) for row in batch if row.role != "pad"] * parts


def test_programs_of_a_window_are_told_when_written_and_when_paid(tmp_path: Path) -> None:
    with tinyrun.tiny_training(tmp_path / "run", 3, regenerate_every=2, documents=2) as training:
        training.trainer.train()
    rows = read_parts(tmp_path / "run").to_pylist()
    written = [row for row in rows if row["type"] == "design" and row["step"] == 1]
    paid = [row for row in rows if row["type"] == "late_design"]
    assert [row["step"] for row in paid] == [3] * len(written)
    assert all(row["reward"] is None and row["advantage"] is None for row in written)
    assert all(row["reward"] is not None and row["advantage"] is not None and row["mask_runs"] for row in paid)
    assert any(row["id"] and len(row["plain"]) == 6 for row in paid), "returns of both rollouts of the window"
    assert {line["type"] for line in _lines(tmp_path / "run")} == {"design", "episode"}


def test_wrong_values_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="transcripts must be one of jsonl, parquet, both, off"):
        tinyrun.tiny_config(tmp_path, 1, transcripts="csv")
    assert tinyrun.tiny_config(tmp_path, 1, transcripts=True).transcripts == "both"


def test_resume_drops_later_and_half_written_parts(tmp_path: Path) -> None:
    folder = tmp_path / "transcripts"
    row = {"type": "episode", "role": "agent", "group": "x", "messages": [{"role": "user", "content": "a\ud800b"}]}
    for step in (1, 2, 3):
        write_part(folder / f"step-{step:06d}-rank-0.parquet", [row | {"step": step, "rank": 0}])
    (folder / "step-000002-rank-1.parquet.tmp").write_bytes(b"half")
    (folder / "notes.txt").write_text("someone's own")
    arguments = SimpleNamespace(output_dir=str(tmp_path), process_index=0)
    session: Any = None
    callback = TranscriptsCallback(session, lines=True, parts=True)
    callback.on_train_begin(arguments, SimpleNamespace(global_step=2), None)
    left = sorted(path.name for path in folder.iterdir())
    assert left == ["notes.txt", "step-000001-rank-0.parquet", "step-000002-rank-0.parquet"]
    assert read_parts(tmp_path)["messages"].to_pylist()[0] == [{"role": "user", "content": "a\\ud800b"}]


def test_no_parts_is_an_empty_table(tmp_path: Path) -> None:
    assert read_parts(tmp_path).num_rows == 0
    assert read_parts(tmp_path).schema == part_schema()


def test_fields_are_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "training.md").read_text(encoding="utf-8")
    section = text[text.index("**Transcripts.**") : text.index("### Metrics")]
    assert not [name for name in part_schema().names if f"`{name}`" not in section]
