"""How a run that was cut short ends, and how alarms are shown."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tinyrun

from spade_train.alarms import Alarm
from spade_train.callbacks import last_checkpoint
from spade_train.card import adapter_card
from spade_train.display import DisplayCallback, show_alarms
from spade_train.recipe import RunResult, run


def _run(folder: Path, *, resume: bool = False, **changes: Any) -> RunResult:
    settings = {"stop_on": "validity", "stop_validity": 1.5, "stop_patience": 2, "save_steps": 5} | changes
    config = tinyrun.tiny_config(folder, 5, **settings)
    tokenizer = tinyrun.tiny_tokenizer()
    session, policy = tinyrun.tiny_session(config, tokenizer), (tinyrun.tiny_model(tokenizer), tokenizer)
    return run(config, resume=resume, policy=policy, session=session)


def test_early_stop_leaves_adapter_and_checkpoint_and_can_be_resumed(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    for step in (2, 4):  # resumed, it has its patience anew
        result = _run(folder, resume=True)
        assert result.steps == step
        assert not result.interrupted
        assert result.stopped.startswith("programs that pass validation: below 1.5 for 2 cycles, now ")
        assert result.adapter == folder / "adapter"
        assert (folder / "adapter" / "adapter_model.safetensors").is_file()
        assert last_checkpoint(folder) == folder / f"checkpoint-{step}"
    early = (folder / "adapter" / "adapter_model.safetensors").read_bytes()
    rest = _run(folder, resume=True, stop_on="")
    assert (rest.steps, rest.stopped, len(rest.metrics)) == (5, "", 5)
    assert (folder / "adapter" / "adapter_model.safetensors").read_bytes() != early


def test_alarms_stand_beside_the_progress(tmp_path: Path) -> None:
    shown: list[tuple[int, str]] = []
    callback = DisplayCallback(lambda done, words="": shown.append((done, words)))
    arguments = SimpleNamespace(output_dir=str(tmp_path))
    line = {"reward": 0.0, "design/valid": 0.02, "environment/regret": 0.25}
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps({"step": step, **line}) + "\n" for step in (1, 2, 3)))
    callback.on_train_begin(arguments, SimpleNamespace(global_step=2), None)
    for step in (3, 4, 5):
        callback.on_log(arguments, SimpleNamespace(global_step=step), None, logs=dict(line))
    callback.on_log(arguments, SimpleNamespace(global_step=5), None, logs={"train_runtime": 3.0})
    assert shown == [
        (3, "valid 0.02 · regret 0.25"),
        (4, "valid 0.02 · regret 0.25"),
        (5, "valid 0.02 · regret 0.25 · alarm: invalid"),
    ]


def test_alarms_are_shown_once_each_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    told = [Alarm("kl", "critical", step, f"cause {step}", "Do this.") for step in (3, 53)]
    show_alarms([*told, Alarm("isolation", "warning", 1, "[bold]cause", "Do that.")])
    said = " ".join(capsys.readouterr().err.split())
    assert said == "alarm kl (step 53): cause 53. Do this. alarm isolation (step 1): [bold]cause. Do that."


def test_card_names_a_base_model_that_the_hub_knows(tmp_path: Path) -> None:
    config = tinyrun.tiny_config(tmp_path / "run", 3, model="Qwen/Qwen3-4B")
    card = adapter_card(config, 3, {"design/valid": 0.5})
    assert "\nbase_model: Qwen/Qwen3-4B\n" in card
    assert "| valid designs | 0.500 |" in card
    local = tinyrun.tiny_config(tmp_path / "run", 3, model="./weights")
    assert "base_model:" not in adapter_card(local, 3)
