"""The figures of a quickstart and its report."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from spade_train import quickstart, recipe
from spade_train.quickstart import TRAINING, QuickstartStopped
from spade_train.report import Score, curves, moving_average, write_report

ROOT = Path(__file__).parents[2]


def test_wilson_interval_of_a_known_case() -> None:
    # 15 of 50: Wilson's interval is (0.191, 0.438); e.g. Brown, Cai, DasGupta (2001), table of intervals.
    low, high = Score(15, 50).interval
    assert (round(low, 3), round(high, 3)) == (0.191, 0.438)
    assert Score(0, 10).interval[0] == 0.0
    assert Score(0, 0).interval == (0.0, 1.0)


def test_moving_average() -> None:
    assert moving_average([1.0, 3.0, 5.0, 7.0], 2) == [1.0, 2.0, 4.0, 6.0]


def test_the_recipe_is_the_quickstart() -> None:
    recipe = yaml.safe_load((ROOT / "examples/recipes/nano_cpu.yaml").read_text())
    assert {name: recipe.get(name) for name in TRAINING} == TRAINING


def test_the_same_metrics_give_the_same_pictures() -> None:
    metrics = [{"step": step, "design/valid": 0.5 + step / 100, "environment/regret": 0.1} for step in range(1, 9)]
    first = curves(metrics)
    assert len(first) == 2
    assert first == curves(metrics)


def test_the_report_shows_hostile_text_as_text(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    path = write_report(
        tmp_path / "report.html", title=evil, summary=evil, table=[(evil, evil, evil)], table_note=evil, pictures=[],
        limits=[evil], files=[(evil, evil)], version="0", seed=0,
        example={"env_id": evil, "words": evil, "source": evil,
                 "episodes": [{"title": evil, "messages": [{"role": evil, "content": evil + "\ud800"}], "return_": 0.0,
                               "stop": evil}]},
        designs=[{"step": 1, "status": evil, "reward": None, "source": evil, "reason": evil}],
    )  # fmt: skip
    text = path.read_text(encoding="utf-8")
    assert "<script" not in text
    assert text.count("&lt;script&gt;") >= 12


def test_a_quickstart_that_is_stopped_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = recipe.RunResult(tmp_path, tmp_path, 3, [], stopped="SIGTERM", interrupted=True)
    monkeypatch.setattr(recipe, "run", lambda *_, **__: stopped)
    with pytest.raises(QuickstartStopped, match="SIGTERM after 3 of 8"):
        quickstart._train(tmp_path, 8, 0)


def test_a_small_quickstart_leaves_everything(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    command = [sys.executable, "-m", "spade_envs.cli.app", "quickstart", "--output", str(folder), "-n", "6",
               "--steps", "2", "--json"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["generated"] == 6
    assert summary["iterations"] == 2
    assert summary["before"]["all"]["n"] == summary["after"]["all"]["n"] == 400
    assert summary["before"]["designs"]["success"] > 0.8
    assert (folder / "adapter" / "adapter_model.safetensors").is_file()
    assert len((folder / "metrics.jsonl").read_text().splitlines()) == 2
    report = (folder / "report.html").read_text()
    assert report.count("<svg") == 5
    assert not re.search(r'(src|href)="(?!#)', report)  # nothing is fetched
    assert "What this does not show" in report
