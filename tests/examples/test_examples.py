"""Every example runs as a user would run it, small."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from endpoint_server import Server, good

from spade_envs.memory import Memory
from spade_envs.record import EnvironmentRecord

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
GUESSING = """
class CoinEnv(TextEnv):
    def reset(self, seed=None):
        super().reset(seed)
        self.side = self.rng.choice(["heads", "tails"])
        return "Heads or tails?", {}

    def step(self, action):
        return "", float(self.answer(action) == self.side), True, False, {}

    def hint(self):
        return f"It is {self.side}."
"""


def run(name: str, *arguments: str, strict: bool = True, errors: int = subprocess.PIPE) -> str:
    command = [sys.executable, *(["-W", "error"] if strict else []), str(EXAMPLES / name), *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, text=True, timeout=240)
    assert done.returncode == 0, done.stderr or done.stdout
    return done.stdout


def test_examples_are_short() -> None:
    lengths = {path.name: len(path.read_text().splitlines()) for path in EXAMPLES.glob("*.py")}
    assert lengths
    assert {name: length for name, length in lengths.items() if length >= 80} == {}


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "make_and_play.py",
            ["ChangeEnv: admitted True, proven True", "Hint: Take the coins", "return 1.0, terminated True"],
        ),
        ("vector_rollout.py", ["bisection wins 32 of 32 episodes"]),
        ("custom_probe.py", ["padding 0: admitted True", "padding 40: admitted False\n  short_statement: the first"]),
        ("tool_agent.py", ["User: That is all.", "clerk: returns [1.0, 1.0, 1.0, 1.0]"]),
    ],
)
def test_example(name: str, says: list[str]) -> None:
    said = run(name)
    for text in says:
        assert text in said


def test_import_published_pool(tmp_path: Path) -> None:
    arguments = ["--memory", str(tmp_path / "m"), "--export", str(tmp_path / "out")]
    said = run("import_published_pool.py", str(ROOT / "tests/data/llm_style"), *arguments)
    assert "e07_minesweeper_np.py: policy" in said
    assert "{'admitted': 15, 'refused': 1}" in said
    assert "exported 15 environments" in said
    assert list((tmp_path / "out").rglob("*.parquet"))


def test_calibrate_with_endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with Memory.open(tmp_path / "m") as memory:
        record = EnvironmentRecord.create(GUESSING, "CoinEnv")
        memory.add(record)
    server = Server()
    server.answers = [good("\\boxed{heads}")]
    try:
        said = run("calibrate_with_endpoint.py", str(tmp_path / "m"), "openai:echo", "--base-url", server.url)
    finally:
        server.close()
    (rate,) = re.findall(r"win rate (\S+)", said)
    with Memory.open(tmp_path / "m", read_only=True) as memory:
        statistics = memory.get(record.id).statistics
    assert statistics.win_rate == pytest.approx(float(rate), abs=0.01)
    assert statistics.plain_plays == statistics.hinted_plays > 0
    assert len(server.seen) == statistics.plain_plays + statistics.hinted_plays


def test_generate_from_folder(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "farm.md").write_text("The hen, the fox and the goat went to the farm. The hen had seven eggs.")
    said = run("generate_from_folder.py", str(notes), "--memory", str(tmp_path / "m"), "-n", "2", strict=False)
    assert "2 environments from" in said
    assert "\nspade/" in said


@pytest.mark.parametrize("name", ["own_grpo_script.py", "custom_reward.py"])
def test_training_scripts(name: str, tmp_path: Path) -> None:
    said = run(name, str(tmp_path / "run"), "1", strict=False, errors=subprocess.STDOUT)
    for noise in ("Warning", "it/s", "learning_rate"):  # of the libraries
        assert noise not in said
    assert re.search(r"^train: 1/1 .*valid \d\.\d\d", said, re.MULTILINE)
    assert (tmp_path / "run/adapter/adapter_model.safetensors").is_file()
    assert len((tmp_path / "run/metrics.jsonl").read_text().splitlines()) == 1
