"""Training with a vLLM engine in the process: what it samples from is the policy of the step, by either way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import livellm
import pytest
import torch
from livellm import LiveLLM
from tiny import tiny_model, tiny_tokenizer
from tinyrun import tiny_config, tiny_session

from spade_train.lora.sync import AdapterSync
from spade_train.recipe import build_trainer


def _train(folder: Path, way: str) -> tuple[list[float], Any]:
    """Train three steps; return how far sampled and trained log-probabilities were apart, and the trainer."""
    tokenizer = tiny_tokenizer()
    model = tiny_model(tokenizer)
    model.save_pretrained(folder / "base")
    model.name_or_path = model.config._name_or_path = str(folder / "base")
    config = tiny_config(folder / "run", 3, documents=2, use_vllm=True, vllm_mode="colocate", lora_sync=way)
    with build_trainer(config, policy=(model, tokenizer), session=tiny_session(config, tokenizer)) as training:
        training.trainer.train()
        lines = training.trainer.state.log_history
        name = "sampling/sampling_logp_difference/max"
        return [line[name] for line in lines if name in line], training.trainer


@pytest.mark.parametrize("way", ["adapter", "merge"])
def test_engine_samples_from_the_policy_of_each_step(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    livellm.install(monkeypatch)
    apart, trainer = _train(tmp_path, way)
    assert len(apart) == 3
    assert max(apart) < 1e-3
    (engine,) = LiveLLM.made
    assert bool(engine.weights_taken) == (way == "merge")
    assert list(engine.adapters) == ([3] if way == "adapter" else [])
    assert ("enable_lora" in engine.arguments) == (way == "adapter")
    moved = [value for name, value in trainer.model.named_parameters() if "lora_B" in name]
    assert max(value.abs().max().item() for value in moved) > 1e-3, "the policy must move, or nothing is shown"
    base = dict(tiny_model(tiny_tokenizer()).named_parameters())
    for name, value in trainer.model.get_base_model().named_parameters():
        if ".lora_" not in name:
            assert torch.equal(value, base[name.replace(".base_layer", "")])
    assert (tmp_path / "run" / "served").exists() == (way == "adapter")


def test_engine_that_keeps_the_first_policy_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    livellm.install(monkeypatch)
    sync = AdapterSync.sync
    first: list[Any] = []

    def once(self: AdapterSync, step: int) -> Any:
        if not first:
            first.append(sync(self, step))
        return first[0]

    monkeypatch.setattr(AdapterSync, "sync", once)
    apart, _ = _train(tmp_path, "adapter")
    assert apart[0] < 1e-3 < 1e-2 < apart[-1]
