"""`spade eval` and its subcommands, as they are typed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from endpoint_server import Server, good
from typer.testing import CliRunner, Result

from spade_envs.models.base import ModelError
from spade_train.evaluation.cli import app
from spade_train.evaluation.protocol import EvaluationError

ROWS = [{"id": n, "problem": f"problem {n}", "answer": 7 if n else 8} for n in range(4)]


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def _spade(*arguments: Any, code: int = 0) -> Result:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def test_score_table_compare(tmp_path: Path) -> None:
    data = tmp_path / "rows.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    server = Server()
    asked = ["--model", "openai:m", "--base-url", server.url, "--suite", "aime-2026", "--data", f"aime-2026={data}"]
    asked += ["--samples", 2, "--prices", "0,1000000"]
    server.answers = [good("so \\boxed{7}")]
    first = json.loads(_spade(*asked, "-o", tmp_path / "a", "--label", "base", "--json").stdout)
    (mine,) = first["measured here"]
    assert (mine["score"], mine["questions"], mine["samples"], mine["as_published"]) == (0.75, 4, 2, False)
    assert mine["cost"] == pytest.approx(8 * 3)
    assert first["published"][0]["column"] == "AIME'26"
    requests = len(server.seen)
    text = _spade(*asked, "-o", tmp_path / "a", "--label", "base").output
    assert len(server.seen) == requests == 8
    assert "| base | measured here | 75.0 (" in text
    assert "| SPADE, Qwen3-30B-A3B | published | +0.9 over its base |" in text
    assert "protocol changed" in text
    server.answers = [good("\\boxed{8}")]
    _spade(*asked, "-o", tmp_path / "b", "--label", "other")
    folders = [next((tmp_path / name).rglob("result.json")).parent for name in "ab"]
    assert "base is better" not in (words := _spade("compare", *folders).output)
    assert words.startswith("No difference can be told from chance, 4 questions being few: other 25.0 % against base")
    assert json.loads(_spade("compare", *folders, "--json").stdout)["questions"] == 4
    latex = _spade("table", tmp_path / "a", tmp_path / "b", "--format", "latex", "--no-published").output
    assert latex.count("measured here") == 2
    assert "published" not in latex.split("\\bottomrule")[0]
    server.close()


def test_questions_are_written_for_the_guard(tmp_path: Path) -> None:
    data = tmp_path / "rows.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    output = tmp_path / "questions.jsonl"
    _spade("questions", "aime-2025", "--data", f"aime-2025={data}", "-o", output)
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert rows[2]["id"] == "aime-2025/2"
    assert "problem 2" in rows[2]["text"]


def test_what_cannot_be_run_says_why(tmp_path: Path) -> None:
    runner = CliRunner()

    def refused(*arguments: str) -> BaseException | None:
        return runner.invoke(app, list(arguments)).exception

    assert "did you mean aime-2026" in str(refused("--model", "nano", "--suite", "aime-2062"))
    assert isinstance(refused("--model", "gpt", "--suite", "reasoning-gym", "-o", str(tmp_path)), ModelError)
    assert "--model and at least one --suite" in str(refused("--model", "nano"))
    assert isinstance(refused("compare", str(tmp_path), str(tmp_path)), EvaluationError)
    assert "SUITE=FILE" in str(refused("--model", "nano", "--suite", "aime-2025", "--data", "x"))


def test_help_names_every_suite() -> None:
    text = _spade("--help").output
    for name in ("reasoning-gym", "bfcl-v4", "acebench", "tau2-bench", "memory:DIR"):
        assert name in text
