"""Benchmarks in the layout and with the columns in which they are published, through the Hub's own loader."""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import datasets
import huggingface_hub.constants
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from spade_train.evaluation.protocol import Protocol, published_protocol
from spade_train.evaluation.suites.gpqa import GpqaSuite
from spade_train.evaluation.suites.livecodebench import LiveCodeBenchSuite
from spade_train.evaluation.suites.maths import MathsSuite


@pytest.fixture(autouse=True)
def _no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))


def _published_at(suite: str, folder: Path) -> Protocol:
    """The suite's protocol, with a folder on this machine for the name of the repository."""
    protocol = published_protocol(suite)
    return replace(
        protocol, options={**protocol.options, "hub": {**protocol.options["hub"], "repository": str(folder)}}
    )


@pytest.mark.parametrize("suite", ["aime-2025", "aime-2026"])
def test_aime_as_matharena_publishes_it(suite: str, tmp_path: Path) -> None:
    """Numbers are integers; 2025 has a list of kinds besides."""
    columns: dict[str, Any] = {
        "problem_idx": pa.array([1, 2], pa.int64()),
        "problem": ["Find $6 \\cdot 7$.", "Find the sum."],
        "answer": pa.array([42, 588], pa.int64()),
    }
    if suite == "aime-2025":
        columns["problem_type"] = pa.array([["Algebra"], ["Geometry", "Number Theory"]], pa.list_(pa.string()))
    folder = tmp_path / "repository"
    (folder / "data").mkdir(parents=True)
    pa.parquet.write_table(pa.table(columns), folder / "data" / "train-00000-of-00001.parquet")
    card = "---\nconfigs:\n- config_name: default\n  data_files:\n  - split: train\n    path: data/train-*\n---\n"
    (folder / "README.md").write_text(card)
    made = MathsSuite(suite, _published_at(suite, folder))
    one, two = made.questions()
    assert (one.id, one.reference, two.id, two.reference) == ("1", "42", "2", "588")
    assert "Find $6 \\cdot 7$." in one.text
    assert made.score(two, "So \\boxed{588}.")[0] == 1.0
    assert made.score(two, "So \\boxed{589}.")[0] == 0.0
    made.close()


def test_gpqa_as_it_is_published(tmp_path: Path) -> None:
    """A CSV file for each configuration; more columns than we need, some of them empty."""
    columns = {
        "Pre-Revision Question": ["old", "old"],
        "Question": ["Which quark,\nof six?", "How many?"],
        "Correct Answer": ["top\n", "4"],
        "Incorrect Answer 1": ["up", "1"],
        "Incorrect Answer 2": ["down", "2"],
        "Incorrect Answer 3": ["charm, or so", "3"],
        "Explanation": ["It is.", None],
        "Canary String": [None, None],
        "High-level domain": ["Physics", "Physics"],
        "Record ID": ["rec1", "rec2"],
    }
    folder = tmp_path / "repository"
    folder.mkdir()
    for name in ("gpqa_diamond", "gpqa_main"):
        pa.csv.write_csv(pa.table(columns), folder / f"{name}.csv")
    card = "".join(f"- config_name: {n}\n  data_files: {n}.csv\n" for n in ("gpqa_main", "gpqa_diamond"))
    (folder / "README.md").write_text(f"---\nconfigs:\n{card}---\n")
    made = GpqaSuite("gpqa-diamond", _published_at("gpqa-diamond", folder))
    one, two = made.questions()
    assert f"{one.reference}. top\n" in f"{one.text}\n"
    assert f"{two.reference}. 4\n" in f"{two.text}\n"
    assert made.score(two, f"\\boxed{{{two.reference}}}")[0] == 1.0


def test_livecodebench_as_it_is_published(tmp_path: Path) -> None:
    """All columns are text: tests as JSON, private ones packed, and kept in the cache of huggingface_hub."""

    def packed(cases: list[dict[str, str]]) -> str:
        return base64.b64encode(zlib.compress(pickle.dumps(json.dumps(cases)))).decode()

    def case(given: str, wanted: str, kind: str) -> dict[str, str]:
        return {"input": given, "output": wanted, "testtype": kind}

    common = {
        "question_title": "t",
        "contest_id": "abc400",
        "contest_date": "2025-04-05T00:00:00",
        "difficulty": "easy",
    }
    rows = [
        {"question_content": "Print the double.\u2028Quickly.", "platform": "atcoder", "question_id": "abc400_a",
         "starter_code": "", "public_test_cases": json.dumps([case("2\n", "4\n", "stdin")]),
         "private_test_cases": packed([case("5\n", "10\n", "stdin")]), "metadata": "{}", **common},
        {"question_content": "Add both.", "platform": "leetcode", "question_id": "3832",
         "starter_code": "class Solution:\n    def plus(self, a: int, b: int) -> int:\n        ",
         "public_test_cases": json.dumps([case("1\n2", "3", "functional")]),
         "private_test_cases": packed([case("4\n5", "9", "functional")]),
         "metadata": json.dumps({"func_name": "plus"}), **common},
    ]  # fmt: skip
    kept = tmp_path / "hub" / "datasets--livecodebench--code_generation_lite"
    (kept / "snapshots" / "0f1e").mkdir(parents=True)
    (kept / "refs").mkdir()
    (kept / "refs" / "main").write_text("0f1e")
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (kept / "snapshots" / "0f1e" / "test6.jsonl").write_text(lines)
    made = LiveCodeBenchSuite("livecodebench-v6", published_protocol("livecodebench-v6"))
    one, two = made.questions()
    assert (one.id, two.id) == ("abc400_a", "3832")
    right = ("print(2 * int(input()))", "class Solution:\n    def plus(self, a, b):\n        return a + b")
    for question, program in zip((one, two), right):
        assert made.score(question, f"```python\n{program}\n```") == (1.0, {"passed": 2, "tests": 2})
        assert made.score(question, "```python\nprint(4)\n```")[0] == 0.0
