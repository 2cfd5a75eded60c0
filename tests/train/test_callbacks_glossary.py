"""Every figure that a run emits is in the glossary, and reaches TRL's ``report_to``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import tinyrun
from doubles import program

from spade_train.callbacks import read_metrics

ROOT = Path(__file__).parents[2]
PLACE = re.compile(r"<\w+>")


def glossary() -> list[re.Pattern[str]]:
    """The names in the first column of the metrics table; ``<x>`` stands for anything without a slash."""
    text = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    table = text[text.index("### Metrics") : text.index("### Alarms")]
    rows = [line.split(" | ")[0] for line in table.splitlines() if line.startswith("| `")]
    names = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    return [re.compile("[^/]+".join(map(re.escape, PLACE.split(name))) + r"\Z") for name in names]


def undocumented(names: Iterator[str] | set[str]) -> set[str]:
    known = glossary()
    return {name for name in names if not any(pattern.match(name) for pattern in known)}


def test_every_metric_of_a_run_is_documented(tmp_path: Path) -> None:
    import json

    heldout = tmp_path / "heldout.jsonl"
    heldout.write_text(json.dumps({"id": "p", "source": program(1)}) + "\n")
    folder = tmp_path / "run"
    settings = {"heldout": str(heldout), "heldout_every": 1, "beta": 0.01}
    with tinyrun.tiny_training(folder, 3, documents=2, **settings) as training:
        training.trainer.train()
    lines = read_metrics(folder)
    names = {name for line in lines for name in line}
    assert undocumented(names) == set()
    wanted = {
        "design/valid", "design/cut", "diversity/ideas", "diversity/designs", "diversity/memory", "environment/regret",
        "environment/regret_bin_5", "hint/characters", "episode/tokens_max", "sandbox/isolation", "sandbox/died",
        "memory/size", "kl", "entropy", "heldout/success", "seconds/update", "advantage/designer_zero_share",
    }  # fmt: skip
    assert wanted <= names


def test_the_same_figures_reach_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX")
    with tinyrun.tiny_training(tmp_path / "run", 1, documents=2, report_to="tensorboard") as training:
        training.trainer.train()
    (file,) = (path for path in tmp_path.rglob("events.out.tfevents.*"))
    written = file.read_bytes()
    assert not [name for name in read_metrics(tmp_path / "run")[0] if "/" in name and _missing(name, written)]


def _missing(name: str, written: bytes) -> bool:
    return name != "seconds/update" and f"train/{name}".encode() not in written


def test_the_nano_run_knows_no_other_names(tmp_path: Path) -> None:
    """The embedded designer, whose programs are refused by real probes and whose hints are real."""
    from spade_train.config import load_recipe
    from spade_train.recipe import run

    settings = {"documents": 2, "designs": 3, "plays": 2, "max_steps": 1, "minimum_isolation": "static"}
    config = load_recipe(ROOT / "examples/recipes/nano_cpu.yaml", output_dir=str(tmp_path / "run"), **settings)
    result = run(config)
    assert undocumented(set(result.metrics[0])) == set()
    assert result.alarms == []
    assert result.stopped == ""


def test_what_is_not_there_is_found() -> None:
    assert undocumented({"design/valid", "design/invented", "stop/terminated", "stop/a/b"}) == {
        "design/invented", "stop/a/b",
    }  # fmt: skip
