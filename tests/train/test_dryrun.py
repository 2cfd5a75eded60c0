"""What ``spade train --dry-run`` prints and finds missing."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import typer
from doubles import record
from typer.testing import CliRunner

from spade_envs.memory import Memory
from spade_train.cli import train
from spade_train.config import ConfigError
from spade_train.dryrun import Check, DryRun, dry_run
from spade_train.dryrun.render import lines

ROOT = Path(__file__).parents[2]
NANO = ROOT / "examples" / "recipes" / "nano_cpu.yaml"


def _dry(tmp_path: Path, **changes: Any) -> DryRun:
    return dry_run(NANO, output_dir=str(tmp_path / "run"), **changes)


def _check(report: DryRun, name: str) -> Check:
    return next(check for check in report.checks if check.name == name)


@pytest.fixture(scope="module")
def healthy() -> Iterator[str]:
    """The address of a server that answers as a vLLM server does when it is asked for its health."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/health/" else 404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def test_nothing_is_missing_and_nothing_is_made(tmp_path: Path) -> None:
    report = _dry(tmp_path)
    assert report.ok, report.checks
    assert not (tmp_path / "run").exists()
    assert report.sizes["rows"] == report.sizes["programs"] + report.sizes["plain_episodes"] == 15 + 180
    assert report.tokens["programs"] == 15 * 64
    assert report.changed["learning_rate"] == 2e-3
    assert "epsilon" not in report.changed
    assert report.settings["epsilon"] == 0.2
    (designer,) = report.prompts  # there is no environment yet that an agent could play
    assert designer.role == "designer"
    assert designer.tokens
    assert report.memory
    assert "peak" in report.memory_note
    text = "\n".join(lines(report))
    assert "settings that differ" in text
    assert "\n  max_steps: 40\n" in text
    assert json.loads(json.dumps(report.to_dict()))["ok"]


def test_agent_prompts_come_from_what_is_there(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "pool") as memory:
        memory.add(record(0), run="test")
    for changes in ({"mode": "fixed_pool", "pool": str(tmp_path / "pool")}, {"memory": str(tmp_path / "pool")}):
        report = _dry(tmp_path, **changes)
        assert report.ok, report.checks
        plain, hinted = (prompt for prompt in report.prompts if prompt.role.startswith("agent"))
        assert "Say a letter" in str(plain.messages[-1]["content"])
        assert "the secret is" in str(hinted.messages[-1]["content"])
        assert hinted.tokens is not None
        assert plain.tokens is not None
        assert hinted.tokens > plain.tokens


@pytest.mark.parametrize(
    ("changes", "name", "detail"),
    [
        ({"model": "nobody/no-such-model"}, "model", "neither a folder nor in the cache"),
        ({"model": "./nowhere"}, "model", "no folder"),
        ({"corpus": "nowhere.jsonl"}, "corpus", "nowhere.jsonl"),
        ({"prompts": "nowhere"}, "prompts", "nowhere"),
        ({"skills": "numbers, juggling"}, "prompts", "no skill 'juggling'"),
        ({"mode": "fixed_pool", "pool": "nowhere"}, "pool", "no pool at nowhere"),
        ({"report_to": "mlflow"}, "package mlflow", "not installed"),
        ({"heldout": "nowhere.jsonl"}, "heldout", "nowhere.jsonl"),
        ({"turn_tokens": 300}, "budgets", "must be smaller"),
        (
            {"use_vllm": True, "vllm_mode": "server", "vllm_server_base_url": "http://127.0.0.1:9"},
            "vLLM server",
            "does not answer",
        ),
    ],
)
def test_what_is_missing_is_told_with_its_remedy(
    tmp_path: Path, changes: dict[str, Any], name: str, detail: str
) -> None:
    report = _dry(tmp_path, **changes)
    check = _check(report, name)
    assert not check.ok
    assert not report.ok
    assert detail in check.detail
    assert f"missing  {name}: " in "\n".join(lines(report))
    assert check.remedy or "expected" in check.detail or "it has" in check.detail


def test_an_error_that_names_its_remedy_is_said_once(tmp_path: Path) -> None:
    said = "\n".join(lines(_dry(tmp_path, corpus="nosuch.jsonl", prompts="nosuch")))
    assert "missing  prompts: no prompt set 'nosuch': expected one of" in said
    said = "\n".join(lines(_dry(tmp_path, corpus="nosuch.jsonl")))
    assert "missing  corpus: nosuch.jsonl does not exist; expected a JSONL or Parquet file" in said
    for words in ("builtin:nano", "Parquet"):
        assert said[said.index("missing  corpus") :].count(words) == 1
    assert "→" not in said[said.index("missing  corpus") : said.index("sandbox:")]


def test_a_policy_with_the_prefix_of_other_commands_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"OWNER/NAME.*did you mean some/model\?"):
        _dry(tmp_path, model="hf:some/model")
    with pytest.raises(ConfigError, match="an endpoint cannot be trained"):
        _dry(tmp_path, model="openai:gpt")


def test_a_model_folder_must_be_whole(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    assert "no config.json" in _check(_dry(tmp_path, model=str(tmp_path / "model")), "model").detail
    (tmp_path / "model" / "config.json").write_text("{}")
    report = _dry(tmp_path, model=str(tmp_path / "model"))
    assert "no weights" in _check(report, "model").detail
    assert report.memory_note.startswith("no estimate")


def test_a_run_folder_that_is_taken(tmp_path: Path) -> None:
    checkpoint = tmp_path / "run" / "checkpoint-3"
    checkpoint.mkdir(parents=True)
    (checkpoint / "spade_state.json").write_text("{}")
    check = _check(_dry(tmp_path), "output")
    assert not check.ok
    assert "checkpoint-3" in check.detail
    assert _check(_dry(tmp_path, resume=True, max_steps=9), "output").detail.endswith("goes on after step 3 of 9")
    done = _check(_dry(tmp_path, resume=True, max_steps=3), "output")
    assert (done.ok, done.remedy) == (False, "raise max_steps (--set max_steps=6)")
    shutil.rmtree(checkpoint)
    assert "starts at its first step" in _check(_dry(tmp_path, resume=True), "output").detail
    (tmp_path / "file").write_text("")
    assert not _check(dry_run(NANO, output_dir=str(tmp_path / "file" / "run")), "output").ok


def test_a_server_that_answers(tmp_path: Path, healthy: str) -> None:
    server = {"use_vllm": True, "vllm_mode": "server", "vllm_server_base_url": healthy}
    assert _check(_dry(tmp_path, **server), "vLLM server").ok
    assert not _check(_dry(tmp_path, **server | {"vllm_server_base_url": f"{healthy}/v1"}), "vLLM server").ok


def test_another_model_that_writes_the_programs(tmp_path: Path, healthy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    author = {"train_designer": False, "designer_model": "openai:big"}
    assert "without a key" in _check(_dry(tmp_path, **author), "designer model").detail
    monkeypatch.setenv("OPENAI_BASE_URL", healthy)
    assert _check(_dry(tmp_path, **author), "designer model").ok
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert not _check(_dry(tmp_path, **author), "designer model").ok
    assert "unknown model" in _check(_dry(tmp_path, **author | {"designer_model": "big"}), "designer model").detail


def test_a_recipe_for_gpus_is_read_without_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    report = dry_run(ROOT / "examples" / "recipes" / "games_30b_a3b.yaml", output_dir=str(tmp_path / "run"))
    assert not _check(report, "accelerator").ok
    assert not _check(report, "corpus").ok
    assert report.recipe[-1].endswith("games_4b.yaml")
    assert "on each of 8 GPU(s), fits into 80" in report.memory_note  # vLLM divides the model over eight
    whole = dry_run(ROOT / "examples" / "recipes" / "games_30b_a3b.yaml", gpus=1, output_dir=str(tmp_path / "run"))
    assert "does not fit into 80" in whole.memory_note  # known from the shape alone
    assert report.sizes["plain_episodes"] == 3 * 16
    assert "use_cpu" not in report.changed


def test_a_wrong_recipe_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="at least 2"):
        _dry(tmp_path, plays=1)


def test_exit_code_and_json(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(train)
    command = ["--config", str(NANO), "--output", str(tmp_path / "run"), "--dry-run", "--json"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0
    assert json.loads(done.output)["sizes"]["cycles"] == 40
    done = CliRunner().invoke(app, [*command, "--set", "corpus=nowhere.jsonl"])
    assert done.exit_code == 1
    checks = {check["name"]: check["ok"] for check in json.loads(done.output)["checks"]}
    assert not checks["corpus"]


def test_a_recipe_for_cpus_is_not_measured_against_a_gpu(tmp_path: Path) -> None:
    note = dry_run(ROOT / "examples" / "recipes" / "nano_cpu.yaml", output_dir=str(tmp_path / "run")).memory_note
    assert "GiB in each of 1 process" in note
    assert "GPU" not in note
