"""Precision and memory settings that matter with an adapter, as far as a CPU shows them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch
from tinyrun import tiny_config, tiny_training

from spade_train.config import ConfigError
from spade_train.recipe import load_policy


def _updated(output: Path, **changes: Any) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    with tiny_training(output, 2, **changes) as training:
        model = training.trainer.model
        before = {name: value.detach().clone() for name, value in model.named_parameters()}
        training.trainer.train()
        return before, {name: value.detach().clone() for name, value in model.named_parameters()}


def test_adapter_is_exact_over_a_base_in_bfloat16(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tinyrun
    from tiny import tiny_model

    monkeypatch.setattr(tinyrun, "tiny_model", lambda tokenizer: tiny_model(tokenizer).to(torch.bfloat16))
    before, after = _updated(tmp_path / "run", bf16=True, learning_rate=1e-4)
    for name, value in after.items():
        adapter = ".lora_" in name
        assert value.dtype is (torch.float32 if adapter else torch.bfloat16), name
        assert torch.isfinite(value).all()
        if not adapter:
            assert torch.equal(value, before[name])
    moved = [value - before[name] for name, value in after.items() if ".lora_A" in name]
    smallest = min(step.abs()[step != 0].min().item() for step in moved if step.any())
    assert 0 < smallest < 2**-12, "steps as small as these would be lost in bfloat16 beside weights of 0.1"


def test_gradient_checkpointing_changes_nothing(tmp_path: Path) -> None:
    _, plain = _updated(tmp_path / "plain")
    _, saving = _updated(tmp_path / "saving", gradient_checkpointing=True)
    assert all(torch.allclose(saving[name], value, atol=1e-6) for name, value in plain.items())
    with tiny_training(tmp_path / "kind", 1, gradient_checkpointing=True) as training:
        given = training.trainer.args.gradient_checkpointing_kwargs or {}
        assert not given.get("use_reentrant", False)


def test_settings_of_the_model_pass_through(tmp_path: Path) -> None:
    config = tiny_config(tmp_path, 1, model_init_kwargs={"attn_implementation": "eager", "dtype": torch.float64})
    model, _ = load_policy(config)
    assert model.config._attn_implementation == "eager"
    assert model.dtype is torch.float64
    assert load_policy(tiny_config(tmp_path, 1))[0].dtype is torch.float32
    assert load_policy(tiny_config(tmp_path, 1, bf16=True))[0].dtype is torch.bfloat16


@pytest.mark.skipif(importlib.util.find_spec("bitsandbytes") is not None, reason="bitsandbytes is installed")
def test_four_bits_need_bitsandbytes(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="pip install bitsandbytes"):
        load_policy(tiny_config(tmp_path, 1, load_in_4bit=True))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"lora_r": 0}, "lora_r must be at least 1"),
        ({"lora_targets": " , "}, "lora_targets must name"),
        ({"lora_sync": "often"}, "lora_sync must be one of auto, adapter, merge"),
        ({"agent_thinking": "maybe"}, "agent_thinking must be one of default, on, off"),
        ({"load_in_4bit": True, "lora_sync": "merge"}, "cannot be exact"),
    ],
)
def test_settings_are_checked(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=said):
        tiny_config(tmp_path, 1, **change)
