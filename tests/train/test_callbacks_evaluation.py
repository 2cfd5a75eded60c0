"""Evaluation during training: on the axis of the metrics, without a trace in the run, the best adapter kept."""

from __future__ import annotations

import json
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tinyrun
import torch
from doubles import program, record
from safetensors.torch import load_file

from spade_envs.memory import HashedTokenEmbedder, Memory
from spade_train.callbacks import read_metrics
from spade_train.callbacks.evaluation import EvaluationCallback, undisturbed, whole
from spade_train.callbacks.files import whole_lines
from spade_train.config import ConfigError
from spade_train.evaluation.heldout import HeldoutResult, merge


@pytest.fixture(scope="module")
def heldout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("heldout") / "programs.jsonl"
    lines = [{"id": f"p{index}", "source": program(index), "tier": index % 2} for index in range(3)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_a_run_with_evaluation_ends_with_the_same_adapter(finished_run: Path, heldout: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    settings = {"heldout": str(heldout), "heldout_every": 2, "best_metric": "heldout/success"}
    tinyrun.tiny_run(folder, 4, **settings)
    one, other = (load_file(run / "adapter" / "adapter_model.safetensors") for run in (folder, finished_run))
    assert all(torch.equal(one[name], other[name]) for name in other)
    lines = read_metrics(folder)
    assert [line["step"] for line in lines if "heldout/success" in line] == [1, 3]
    assert all("seconds/evaluate" in line for line in lines if "heldout/success" in line)
    measured = list(whole_lines(folder / "evaluations.jsonl"))
    assert [line["step"] for line in measured] == [0, 2, 4]
    assert [line["heldout/success"] for line in measured[:2]] == [
        pytest.approx(line["heldout/success"]) for line in lines if "heldout/success" in line
    ]
    assert {"heldout/tier_0", "heldout/tier_1", "seconds"} <= set(measured[0])
    best = json.loads((folder / "best" / "best.json").read_text())
    assert best["value"] == max(line["heldout/success"] for line in measured)
    assert best["step"] == next(line["step"] for line in measured if line["heldout/success"] == best["value"])
    assert (folder / "best" / "adapter_model.safetensors").is_file()
    assert (folder / "best" / "tokenizer.json").is_file()


def test_the_policy_that_comes_out_is_evaluated_whatever_the_interval(heldout: Path, tmp_path: Path) -> None:
    tinyrun.tiny_run(tmp_path / "run", 3, heldout=str(heldout), heldout_every=2)
    assert [line["step"] for line in whole_lines(tmp_path / "run" / "evaluations.jsonl")] == [0, 2, 3]


def test_suites_are_asked_as_well(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "mine", embedder=HashedTokenEmbedder()) as memory:
        for index in range(3):
            memory.add(record(index))
    suite = f"memory:{tmp_path / 'mine'}"
    folder, settings = tmp_path / "run", {"evaluate_suites": suite, "evaluate_every": 2, "evaluate_limit": 2}
    tinyrun.tiny_run(folder, 1, **settings)
    (line,) = read_metrics(folder)
    scores = {name: value for name, value in line.items() if name.startswith("eval/")}
    assert scores
    assert all(0.0 <= value <= 1.0 for value in scores.values())
    measured, after = whole_lines(folder / "evaluations.jsonl")
    assert (measured["step"], after["step"]) == (0, 1)
    assert {name: measured[name] for name in scores} == pytest.approx(scores)
    with pytest.raises(ConfigError, match="evaluate_suites: no suite 'aime-2052'; did you mean aime-202"):
        tinyrun.tiny_training(tmp_path / "other", 1, evaluate_suites="aime-2052", evaluate_every=1)


def _callback(folder: Path, heldout: Path, **changes: Any) -> EvaluationCallback:
    config = tinyrun.tiny_config(folder, 4, heldout=str(heldout), heldout_every=2, **changes)
    return EvaluationCallback(SimpleNamespace(config=config))  # type: ignore[arg-type]


class _Policy(torch.nn.Module):
    device = torch.device("cpu")


def test_only_a_better_value_replaces_the_best(
    heldout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tokenizer: Any
) -> None:
    saved: list[Path] = []

    def save(model: Any, folder: Path, *, write: bool) -> Path:
        folder.mkdir(exist_ok=True)
        saved.append(folder)
        return folder

    monkeypatch.setattr("spade_train.callbacks.evaluation.save_adapter", save)
    callback = _callback(tmp_path, heldout, best_metric="heldout/success")
    for step, value in enumerate([0.5, 0.4, 0.5, 0.6]):
        callback._keep_best(tmp_path / "best", step, {"heldout/success": value}, None, tokenizer)
    assert len(saved) == 2
    assert json.loads((tmp_path / "best/best.json").read_text()) == {
        "metric": "heldout/success", "value": 0.6, "step": 3,
    }  # fmt: skip
    wrong = _callback(tmp_path, heldout, best_metric="heldout/sucess")
    with pytest.raises(ConfigError, match="there are heldout/success"):
        wrong._keep_best(tmp_path / "best", 0, {"heldout/success": 1.0}, None, tokenizer)


def test_random_states_and_mode_are_put_back() -> None:
    def draw() -> tuple[float, float, float]:
        return random.random(), float(np.random.rand()), float(torch.rand(1))

    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    expected = [draw(), draw()]
    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    policy = _Policy().train()
    found = [draw()]
    with undisturbed(policy):
        assert not policy.training
        draw()
        random.seed(7)
        torch.manual_seed(7)
    assert policy.training
    assert [*found, draw()] == expected


def test_a_policy_that_is_split_over_ranks_is_refused(heldout: Path, tmp_path: Path) -> None:
    policy = torch.nn.Linear(1, 1)
    assert whole(policy)
    policy.weight.ds_id = 3  # type: ignore[attr-defined]  # as ZeRO-3 marks them
    assert not whole(policy)
    arguments = SimpleNamespace(output_dir=str(tmp_path), process_index=0)
    with pytest.raises(ConfigError, match="spade eval"):
        _callback(tmp_path, heldout).on_step_begin(
            arguments, SimpleNamespace(global_step=0), None, model=policy, processing_class=None
        )


def test_ranks_are_put_together_by_their_episodes() -> None:
    one = HeldoutResult(0.5, 2, {0: 0.5}, {"terminated": 2}, 10, {0: 2})
    two = HeldoutResult(1.0, 4, {0: 1.0, 1: 1.0}, {"terminated": 3, "turn_limit": 1}, 5, {0: 2, 1: 2})
    both = merge([one, two])
    assert (both.success, both.episodes, both.tokens) == (5 / 6, 6, 15)
    assert both.by_tier == {0: 0.75, 1: 1.0}
    assert both.stops == {"terminated": 5, "turn_limit": 1}
    with pytest.raises(ValueError, match="no held-out episode"):
        merge([])


def test_settings_are_checked(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="evaluate_every needs evaluate_suites"):
        tinyrun.tiny_config(tmp_path, 1, evaluate_every=2)
    with pytest.raises(ConfigError, match="best_metric needs an evaluation"):
        tinyrun.tiny_config(tmp_path, 1, best_metric="heldout/success")
    with pytest.raises(ConfigError, match="stop_on takes validity, diversity, regret, got 'luck'"):
        tinyrun.tiny_config(tmp_path, 1, stop_on="regret, luck")
