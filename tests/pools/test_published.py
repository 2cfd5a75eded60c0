"""The layouts of published pools, each as a small copy."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from pool_programs import FREE, TOOLS, bring, digest, held, program

from spade_envs.pools import PoolError, open_pool
from spade_envs.record import EnvironmentRecord, PlayStatistics, source_id


def _games(folder: Path) -> Path:
    """Layout (a): manifest with summary and games, programs by generation."""
    place = folder / "games" / "gen_0001"
    place.mkdir(parents=True)
    entries = []
    for number in (2, 3):
        name = f"game_00004_{number:03d}_optimization.py"
        (place / name).write_text(program(number))
        entries.append(
            {
                "generation": "gen_0001", "step": 4, "filename": name, "skill": "Optimization", "difficulty": "medium",
                "path_in_dataset": f"games/gen_0001/{name}", "has_hint": False, "reward_joined": number == 2,
                "n_plays": 16 if number == 2 else 0, "mean_reward": 0.25 if number == 2 else None,
                "solve_rate": 0.5 if number == 2 else None,
            }
        )  # fmt: skip
    summary = {"n_games": 2, "model": "some-model-30B", "segments": ["x"]}
    (folder / "manifest.json").write_text(json.dumps({"summary": summary, "games": entries}))
    (folder / "README.md").write_text("---\nlicense: apache-2.0\n---\n# Games\n")
    return folder


def test_manifest_with_games(tmp_path: Path) -> None:
    pool = open_pool(_games(tmp_path / "pool"))
    assert (pool.layout, pool.size, pool.licence, pool.generator) == ("manifest", 2, "apache-2.0", "some-model-30B")
    assert [one.status for one in bring(pool, tmp_path / "m")] == ["admitted", "admitted"]
    first = next(stored for stored in held(tmp_path / "m") if stored.record.name == "Multiple2Env").record
    assert (first.skill, first.licence, first.generator, first.kind) == (
        "Optimization", "apache-2.0", "some-model-30B", "game",
    )  # fmt: skip
    assert first.statistics == PlayStatistics(16, 4.0, 8)
    assert first.meta["pool"]["step"] == 4
    assert first.meta["pool"]["name"] == "pool"
    assert first.proven
    assert open_pool(tmp_path / "pool" / "manifest.json") == pool


def test_manifest_with_environments_by_run(tmp_path: Path) -> None:
    place = tmp_path / "environments" / "qwen-4b-run"
    place.mkdir(parents=True)
    (place / "shelf.py").write_text(TOOLS)
    (place / "two.py").write_text(program(2))
    entries = [
        {"source_run": "qwen-4b-run", "file": "shelf.py", "skill": "data_retrieval", "model_scale": "4B"},
        {"source_run": "qwen-4b-run", "path": "environments/qwen-4b-run/two.py", "sha256": digest(program(2))},
        {"source_run": "qwen-4b-run", "file": "gone.py"},
    ]
    (tmp_path / "manifest.json").write_text(json.dumps(entries))
    candidates = list(open_pool(tmp_path))
    assert [bool(candidate.code) for candidate in candidates] == [True, True, False]
    assert candidates[0].fields["kind"] == "tool_use"
    assert candidates[0].fields["skill"] == "Data Retrieval"
    assert candidates[0].fields["meta"]["pool"]["model_scale"] == "4B"
    assert candidates[1].expected_sha256
    assert candidates[1].intact
    assert "not there" in candidates[2].problem


def _rows() -> list[dict[str, object]]:
    codes = [program(2), program(3), program(4)]
    return [
        {
            "game_id": f"game_{number:06d}", "file_name": f"game_{number:06d}.py", "skill": "optimization",
            "sha256": digest(code), "line_count": code.count("\n"), "byte_count": len(code.encode()), "code": code,
        }
        for number, code in enumerate(codes)
    ]  # fmt: skip


@pytest.mark.parametrize("form", ["parquet", "jsonl", "csv"])
def test_table(form: str, tmp_path: Path) -> None:
    rows = _rows()
    rows[2]["code"] = str(rows[2]["code"]).replace("Right", "Yes")  # no more what its SHA-256 says
    path = tmp_path / "data" / f"train.{form}"
    path.parent.mkdir()
    if form == "parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    elif form == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows) + "{broken\n")
    else:
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    outcomes = bring(tmp_path / "data", tmp_path / "m")
    assert [one.status for one in outcomes[:3]] == ["admitted", "admitted", "refused"]
    assert outcomes[2].cause == "sha256"
    assert [one.cause for one in outcomes[3:]] == (["unreadable"] if form == "jsonl" else [])
    records = [stored.record for stored in held(tmp_path / "m")]
    assert {record.id for record in records} == {source_id(program(2)), source_id(program(3))}
    assert {record.skill for record in records} == {"Optimization"}
    assert {record.meta["pool"]["game_id"] for record in records} == {"game_000000", "game_000001"}
    assert [one.label for one in open_pool(path)][:1] == [f"train.{form}:1"]


@pytest.mark.parametrize("form", ["sums", "csv", "jsonl", "manifest"])
def test_files_with_a_list_of_sha256(form: str, tmp_path: Path) -> None:
    pool = tmp_path / "pool"
    pool.mkdir()
    for number in (2, 3):
        (pool / f"g{number}.py").write_text(program(number))
    digests = {"g2.py": digest(program(2)), "g3.py": digest("something else")}
    if form == "sums":
        (pool / "SHA256SUMS").write_text("".join(f"{value}  {name}\n" for name, value in digests.items()))
    elif form == "csv":
        (pool / "files.csv").write_text("file_name,sha256\n" + "".join(f"{n},{v}\n" for n, v in digests.items()))
    elif form == "jsonl":
        lines = (json.dumps({"file_name": name, "sha256": value}) + "\n" for name, value in digests.items())
        (pool / "files.jsonl").write_text("".join(lines))
    else:
        (pool / "manifest.json").write_text(json.dumps({"files": digests}))
    outcomes = bring(pool, tmp_path / "m")
    assert [(one.label, one.status, one.cause) for one in outcomes] == [
        ("g2.py", "admitted", ""),
        ("g3.py", "refused", "sha256"),
    ]


def test_raw_replies_and_fences(tmp_path: Path) -> None:
    pool = tmp_path / "pool"
    pool.mkdir()
    reply = {"skill": "Optimization", "kind": "single-answer", "model": "m-1.5B", "doc": "units",
             "text": f"I thought about it.\n```python\n{program(2)}```\nDone."}  # fmt: skip
    (pool / "a.json").write_text(json.dumps(reply))
    (pool / "b.py").write_text(f"```python\n{program(3)}```\n")
    (pool / "c.json").write_text(json.dumps({"text": "I cannot."}))
    (pool / "d.json").write_text("[")
    outcomes = bring(pool, tmp_path / "m")
    assert [(one.label, one.status, one.cause) for one in outcomes] == [
        ("a.json", "admitted", ""),
        ("b.py", "admitted", ""),
        ("c.json", "refused", "no_code"),
        ("d.json", "refused", "unreadable"),
    ]
    record = next(stored.record for stored in held(tmp_path / "m") if stored.record.name == "Multiple2Env")
    assert record.source == program(2)
    assert (record.generator, record.kind, record.skill, record.document_id) == (
        "m-1.5B", "game", "Optimization", "units",
    )  # fmt: skip


def test_single_files(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(program(2))
    (tmp_path / "two.json").write_text(json.dumps([{"code": program(3)}, {"source": program(4)}]))
    assert [one.status for one in bring(tmp_path / "one.py", tmp_path / "m")] == ["admitted"]
    assert [one.label for one in bring(tmp_path / "two.json", tmp_path / "m")] == ["two.json:1", "two.json:2"]
    assert {stored.record.generator for stored in held(tmp_path / "m")} == {"import:one", "import:two"}


def test_no_file_outside_of_the_pool_is_read(tmp_path: Path) -> None:
    pool = tmp_path / "pool"
    pool.mkdir()
    (tmp_path / "secret.py").write_text(program(2))
    (pool / "link.py").symlink_to(tmp_path / "secret.py")
    names = ["../secret.py", str(tmp_path / "secret.py"), "link.py", "a\0b.py", "games/../../secret.py"]
    (pool / "manifest.json").write_text(json.dumps({"games": [{"path_in_dataset": name} for name in names]}))
    assert [candidate.code for candidate in open_pool(pool)] == [""] * len(names)
    assert {one.cause for one in bring(pool, tmp_path / "m")} == {"unreadable"}


def test_large_programs_are_refused_unread(tmp_path: Path) -> None:
    (tmp_path / "big.py").write_text("#" * 1_000_001)
    (candidate,) = open_pool(tmp_path / "big.py")
    assert "1000001 bytes" in candidate.problem


@pytest.mark.parametrize("name", ["nothing", "empty", "notes.txt"])
def test_what_is_no_pool_is_an_error_that_names_it(name: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(PoolError, match=name):
        open_pool(tmp_path / name)


def test_damaged_files_are_errors(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(PoolError, match="expected JSON"):
        open_pool(tmp_path)
    for name in ("a.parquet", "a.spade"):
        (tmp_path / name).write_bytes(b"PK nothing")
        with pytest.raises(PoolError, match=name):
            list(open_pool(tmp_path / name))


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"n_plays": 8, "solve_rate": 0.25, "mean_reward": 0.5}, PlayStatistics(8, 4.0, 2)),
        ({"n_plays": "8", "solve_rate": "0.25", "mean_reward": ""}, PlayStatistics(8, 2.0, 2)),
        ({"n_plays": 8, "solve_rate": 1.5, "mean_reward": 0.5}, PlayStatistics()),
        ({"n_plays": float("nan"), "solve_rate": 1}, PlayStatistics()),
        ({"n_plays": 0, "solve_rate": 1}, PlayStatistics()),
        ({"plain_plays": 2, "plain_return": 1.0, "plain_wins": 3, "hinted_plays": 0, "hinted_return": 0,
          "hinted_wins": 0}, PlayStatistics()),
    ],
)  # fmt: skip
def test_statistics_of_an_entry(entry: dict[str, object], expected: PlayStatistics, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps({**entry, "code": FREE}) + "\n")
    (candidate,) = open_pool(tmp_path / "a.jsonl")
    assert candidate.fields["statistics"] == expected
    assert EnvironmentRecord.create(FREE, "FreeEnv", **candidate.fields)
