"""Exports: round trips, the same bytes, readers of others, filters."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import zipfile
from pathlib import Path

import pyarrow.parquet
import pytest
import yaml
from pool_programs import bring, digest, held, make_memory

from spade_envs.memory import Memory
from spade_envs.memory.transfer import Play, Stored
from spade_envs.pools import ExportFilter, PoolError, export_memory, open_pool
from spade_envs.record import EnvironmentRecord
from spade_envs.sandbox import Sandbox

ALL = ExportFilter(archived=True)


def _export(memory: Path, out: Path, filters: ExportFilter = ALL, **options: object) -> Path:
    with Memory.open(memory, read_only=True) as store:
        return export_memory(store, out, filters=filters, **options).path  # type: ignore[arg-type]


def _files(folder: Path) -> dict[str, str]:
    found = (file for file in folder.rglob("*") if file.is_file())
    return {file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest() for file in found}


@pytest.mark.parametrize("form", ["out", "out.spade"])
def test_everything_comes_back(form: str, filled: Path, tmp_path: Path) -> None:
    outcomes = bring(_export(filled, tmp_path / form), tmp_path / "m")
    assert {one.status for one in outcomes} == {"admitted"}
    before, after = held(filled), held(tmp_path / "m")
    assert after == before  # ids, hints, parents, reports with findings, statistics, plays, runs, archived
    assert sum(stored.archived for stored in after) == 1
    assert sum(bool(stored.record.hint) for stored in after) == 1
    assert all(stored.record.statistics.regret is not None for stored in after)
    assert len(after[0].plays) == 6


def test_the_table_alone_brings_the_sums(filled: Path, tmp_path: Path) -> None:
    bring(_export(filled, tmp_path / "out.parquet"), tmp_path / "m")
    before, after = held(filled), held(tmp_path / "m")
    assert [stored.record for stored in after] == [stored.record for stored in before]
    assert {stored.plays for stored in after} == {()}


def test_the_manifest_and_the_files_alone_read_as_a_published_pool(filled: Path, tmp_path: Path) -> None:
    out = _export(filled, tmp_path / "out")
    for name in ("environments.parquet", "plays.parquet"):
        (out / name).unlink()
    pool = open_pool(out)
    assert (pool.layout, pool.size, pool.licence) == ("manifest", 4, "apache-2.0")
    assert {one.status for one in bring(pool, tmp_path / "m")} == {"admitted"}
    for before, after in zip(held(filled), held(tmp_path / "m"), strict=True):
        assert after.record.id == before.record.id
        assert after.record.statistics.win_rate == before.record.statistics.win_rate
        for name in ("skill", "kind", "hint", "generator", "licence", "proven"):
            assert getattr(after.record, name) == getattr(before.record, name), name


def test_the_columns_of_the_published_table_are_there(filled: Path, tmp_path: Path) -> None:
    out = _export(filled, tmp_path / "out")
    manifest = json.loads((out / "manifest.json").read_text())
    rows = pyarrow.parquet.read_table(out / "environments.parquet").to_pylist()
    for row, entry in zip(rows, manifest["games"], strict=True):
        file = out / entry["path_in_dataset"]
        assert file.read_text() == row["code"]
        assert digest(row["code"]) == row["sha256"] == entry["sha256"] == row["id"]
        assert row["byte_count"] == file.stat().st_size
        assert row["file_name"] == file.name
        assert {"game_id", "skill", "line_count"} <= row.keys()
        assert (entry["n_plays"], entry["solve_rate"]) == (4, 0.25)


def test_datasets_reads_an_export(filled: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    out = str(_export(filled, tmp_path / "out"))
    rows = datasets.load_dataset(out, split="train", cache_dir=str(tmp_path / "cache"))
    assert sorted(rows["id"]) == [stored.record.id for stored in held(filled)]
    assert rows.features["win_rate"].dtype == "float64"
    plays = datasets.load_dataset(out, "plays", split="train", cache_dir=str(tmp_path / "cache"))
    assert len(plays) == 24


def test_equal_records_make_equal_bytes(filled: Path, sandbox: Sandbox, tmp_path: Path) -> None:
    one = _export(filled, tmp_path / "one" / "pool")
    bring(one, tmp_path / "m")
    assert _files(_export(tmp_path / "m", tmp_path / "two" / "pool")) == _files(one)
    packed = [_export(memory, tmp_path / f"{memory.name}.spade", name="x") for memory in (filled, tmp_path / "m")]
    assert packed[0].read_bytes() == packed[1].read_bytes()
    assert set(zipfile.ZipFile(packed[0]).namelist()) == {
        "README.md", "environments.parquet", "manifest.json", "plays.parquet",
    }  # fmt: skip


def test_the_card(filled: Path, tmp_path: Path) -> None:
    text = (_export(filled, tmp_path / "out", name="My | games") / "README.md").read_text()
    header = yaml.safe_load(text.split("---")[1])
    assert header["license"] == "apache-2.0"
    assert [config["config_name"] for config in header["configs"]] == ["default", "plays"]
    assert "# My games" in text
    assert "| model-0 | 2 |" in text


def test_licences_that_differ(tmp_path: Path, sandbox: Sandbox) -> None:
    folder = make_memory(tmp_path / "m", sandbox, count=1)
    with Memory.open(folder) as memory:
        memory.add(EnvironmentRecord.create("class OtherEnv:\n    pass\n", "OtherEnv", licence="MIT"))
        memory.add(EnvironmentRecord.create("class BareEnv:\n    pass\n", "BareEnv"))
    header = (_export(folder, tmp_path / "out") / "README.md").read_text()
    assert "license: other\nlicense_name: per-environment" in header
    rows = pyarrow.parquet.read_table(_export(folder, tmp_path / "a.parquet", licence="CC0-1.0")).to_pylist()
    assert sorted(row["licence"] for row in rows) == ["Apache-2.0", "CC0-1.0", "MIT"]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (ExportFilter(), 3),
        (ExportFilter(archived=True), 4),
        (ExportFilter(archived=True, run="run-a"), 2),
        (ExportFilter(archived=True, skill="Optimization"), 2),
        (ExportFilter(archived=True, generator="model-1", kind="game"), 2),
        (ExportFilter(archived=True, proven=True, min_plays=6), 4),
        (ExportFilter(archived=True, min_plays=7), 0),
        (ExportFilter(archived=True, min_win_rate=0.3), 0),
        (ExportFilter(archived=True, max_win_rate=0.3, min_regret=0.6), 4),
        (ExportFilter(archived=True, min_regret=0.7), 0),
    ],
)
def test_filters(filters: ExportFilter, expected: int, filled: Path, tmp_path: Path) -> None:
    if not expected:
        with pytest.raises(PoolError, match="nothing to export"):
            _export(filled, tmp_path / "a.parquet", filters)
        assert list(tmp_path.iterdir()) == []
        return
    assert pyarrow.parquet.read_metadata(_export(filled, tmp_path / "a.parquet", filters)).num_rows == expected


def test_only_an_export_is_replaced(filled: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    _export(filled, out)
    with pytest.raises(PoolError, match="--force"):
        _export(filled, out)
    _export(filled, out, ExportFilter(), force=True)
    assert json.loads((out / "manifest.json").read_text())["summary"]["n_games"] == 3
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    with pytest.raises(PoolError, match="is not an export"):
        _export(filled, mine, force=True)
    assert (mine / "thesis.txt").exists()


def test_a_changed_row_is_refused_and_a_report_of_others_is_not_believed(filled: Path, tmp_path: Path) -> None:
    table = pyarrow.parquet.read_table(_export(filled, tmp_path / "out.parquet"))
    rows = table.to_pylist()
    rows[0]["code"] = rows[0]["code"].replace("Right", "Yes")
    rows[1]["report"] = json.dumps({"findings": [], "measures": {}, "name": "X", "proven": True, "admitted": True})
    rows[1]["name"] = "X"
    rows[2]["report"] = "[]"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows, table.schema), tmp_path / "b.parquet")
    outcomes = bring(tmp_path / "b.parquet", tmp_path / "m")
    assert [(one.status, one.cause) for one in outcomes] == [
        ("refused", "unreadable"), ("admitted", ""), ("refused", "unreadable"), ("admitted", ""),
    ]  # fmt: skip
    before = {stored.record.id: stored.record for stored in held(filled)}
    for stored in held(tmp_path / "m"):
        assert stored.record.name == before[stored.record.id].name
        assert stored.record.report["findings"] == before[stored.record.id].report["findings"]
        assert stored.record.report["measures"]["fingerprints"]


def test_plays_that_do_not_fit_the_sums_are_left_out(filled: Path, tmp_path: Path) -> None:
    from spade_envs.memory.transfer import restore

    stored = held(filled)[0]
    more = (*stored.plays, Play(False, 1.0, "x", 0))
    with Memory.open(tmp_path / "m") as memory:
        assert restore(memory, [dataclasses.replace(stored, plays=more)]) == 1
        assert restore(memory, [stored]) == 0
    assert held(tmp_path / "m") == [dataclasses.replace(stored, plays=())]


def test_sources_that_no_file_can_hold_are_left_out_and_counted(tmp_path: Path) -> None:
    odd = "\ud800"
    with Memory.open(tmp_path / "m") as memory:
        memory.add(EnvironmentRecord.create(f"class OddEnv:\n    x = '{odd}'\n", "OddEnv"))
        record = EnvironmentRecord.create(
            "class EvenEnv:\n    pass\n", "EvenEnv", document="\ud800", meta={"x": "\ud800"}
        )
        memory.add(record)
        summary = export_memory(memory, tmp_path / "out")
    assert (summary.environments, summary.left_out) == (1, 1)
    (candidate,) = open_pool(tmp_path / "out")
    assert isinstance(candidate.stored, Stored)
    assert candidate.stored.record.document == "?"
    assert candidate.stored.record.meta == {"x": odd}
