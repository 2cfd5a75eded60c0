"""What a run leaves of its adapter: for peft, for vLLM, and merged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from families import family_model, with_adapter
from peft import PeftModel
from safetensors.torch import load_file
from tiny import tiny_model, tiny_tokenizer
from tinyrun import tiny_config, tiny_run, tiny_training
from transformers import AutoModelForCausalLM, AutoTokenizer

from spade_train.config import ConfigError
from spade_train.lora.export import export_merged, save_adapter, save_merged
from spade_train.lora.serving import ServingError, check_folder
from spade_train.recipe import load_policy


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two steps, which was then asked for merged weights too."""
    folder = tmp_path_factory.mktemp("export") / "run"
    tiny_run(folder, 2)
    assert not (folder / "merged").exists()
    trained = load_file(folder / "adapter" / "adapter_model.safetensors")
    tiny_run(folder, 2, merge=True)
    again = load_file(folder / "adapter" / "adapter_model.safetensors")
    assert all(torch.equal(again[name], trained[name]) for name in trained), "nothing was left to train"
    return folder


def _ids() -> torch.Tensor:
    return torch.arange(10, 40)[None]


def test_adapter_loads_with_peft_and_fits_vllm(finished: Path) -> None:
    check_folder(finished / "adapter", max_rank=8)
    settings = json.loads((finished / "adapter" / "adapter_config.json").read_text(encoding="utf-8"))
    assert settings["task_type"] == "CAUSAL_LM"
    assert settings["modules_to_save"] is None
    policy = PeftModel.from_pretrained(tiny_model(tiny_tokenizer()), str(finished / "adapter"))
    trained = {name: value for name, value in policy.named_parameters() if "lora_B" in name}
    assert trained
    assert any(value.abs().max() > 0 for value in trained.values())


def test_merged_weights_are_the_policy(finished: Path) -> None:
    policy = PeftModel.from_pretrained(tiny_model(tiny_tokenizer()), str(finished / "adapter")).eval()
    merged = AutoModelForCausalLM.from_pretrained(finished / "merged").eval()
    assert not (finished / "merged" / "adapter_config.json").exists()
    with torch.no_grad():
        assert torch.allclose(policy(_ids()).logits, merged(_ids()).logits, atol=1e-4)
        with policy.disable_adapter():
            assert not torch.allclose(policy(_ids()).logits, merged(_ids()).logits, atol=1e-3)
    tokenizer = AutoTokenizer.from_pretrained(finished / "merged")
    assert tokenizer.chat_template == tiny_tokenizer().chat_template


@pytest.mark.parametrize(
    ("family", "targets"),
    [
        ("qwen3", "auto"),
        ("gemma2", "auto"),
        ("qwen2", "auto"),
        ("qwen3_moe", "attention,experts"),
        ("mixtral", "experts"),
    ],
)
def test_merged_checkpoints_of_each_family_load(family: str, targets: str, tmp_path: Path) -> None:
    policy = with_adapter(family_model(family), targets).eval()
    before = {name: value.clone() for name, value in policy.named_parameters()}
    save_merged(policy, tmp_path / "merged")
    assert all(torch.equal(value, before[name]) for name, value in policy.named_parameters())
    merged = AutoModelForCausalLM.from_pretrained(tmp_path / "merged").eval()
    with torch.no_grad():
        assert torch.allclose(policy(_ids()).logits, merged(_ids()).logits, atol=1e-4)
    names = load_file(tmp_path / "merged" / "model.safetensors").keys()
    assert not any("lora" in name or "base_layer" in name for name in names)
    assert any("experts.0." in name for name in names) == ("experts" in targets)


def test_saved_adapter_is_merged_by_itself(tmp_path: Path) -> None:
    base = family_model("llama")
    base.save_pretrained(tmp_path / "base")
    tiny_tokenizer().save_pretrained(tmp_path / "base")
    base.name_or_path = str(tmp_path / "base")
    policy = with_adapter(base).eval()
    save_adapter(policy, tmp_path / "adapter")
    export_merged(tmp_path / "adapter", tmp_path / "half", base=str(tmp_path / "base"), dtype="bfloat16")
    weights = load_file(tmp_path / "half" / "model.safetensors")
    assert {value.dtype for value in weights.values()} == {torch.bfloat16}
    assert AutoModelForCausalLM.from_pretrained(tmp_path / "half", dtype="auto").dtype is torch.bfloat16
    assert (tmp_path / "half" / "tokenizer_config.json").is_file()
    with pytest.raises(ValueError, match="bfloat16, float16, float32"):
        export_merged(tmp_path / "adapter", tmp_path / "x", dtype="int8")
    with pytest.raises(ValueError, match="holds no adapter"):
        export_merged(tmp_path / "base", tmp_path / "x")


def test_folder_is_replaced_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = with_adapter(family_model("llama"))
    save_adapter(policy, tmp_path / "adapter")
    (tmp_path / "adapter" / "left over").write_text("x")
    save_adapter(policy, tmp_path / "adapter")
    assert not (tmp_path / "adapter" / "left over").exists()
    before = (tmp_path / "adapter" / "adapter_config.json").read_bytes()

    def fail(self: Any, folder: Any, **_: Any) -> None:
        Path(folder).mkdir()
        raise OSError("disk full")

    monkeypatch.setattr(type(policy), "save_pretrained", fail)
    with pytest.raises(OSError, match="disk full"):
        save_adapter(policy, tmp_path / "adapter")
    assert (tmp_path / "adapter" / "adapter_config.json").read_bytes() == before


def test_incomplete_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ServingError, match="is missing"):
        check_folder(tmp_path)


def test_an_adapter_is_no_policy(finished: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is an adapter"):
        load_policy(tiny_config(tmp_path, 1, model=str(finished / "adapter")))


def test_reference_is_the_base_and_stays(tmp_path: Path) -> None:
    with tiny_training(tmp_path / "run", 2, beta=0.1, documents=2) as training:
        trainer = training.trainer
        assert trainer.ref_model is None, "the adapter is switched off, no second model is held"
        with torch.no_grad(), trainer.model.disable_adapter():
            before = trainer.model(_ids()).logits
        trainer.train()
        with torch.no_grad(), trainer.model.disable_adapter():
            assert torch.equal(trainer.model(_ids()).logits, before)
        divergence = [line["kl"] for line in trainer.state.log_history if "kl" in line]
    assert divergence[0] == 0.0
    assert divergence[-1] > 0.0
