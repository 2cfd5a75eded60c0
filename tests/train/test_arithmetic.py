"""Memory arithmetic against transformers, peft and autograd themselves."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from peft import LoraConfig, get_peft_model
from transformers import AutoConfig, AutoModelForCausalLM
from trl.trainer.utils import add_fused_lm_head

from spade_train.arithmetic import (
    Run,
    ShapeError,
    adapter_tensors,
    estimate,
    kv_bytes_per_token,
    parameters,
    read_config,
    run_of,
    tensors,
)
from spade_train.arithmetic.__main__ import main
from spade_train.arithmetic.activations import layer_bytes
from spade_train.arithmetic.estimate import most_rows
from spade_train.arithmetic.remedies import remedies
from spade_train.arithmetic.shapes import shipped
from spade_train.config import ConfigError, SpadeConfig
from spade_train.lora.targets import adapter_config

ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
ALL = [*ATTENTION, "gate_proj", "up_proj", "down_proj"]
SMALL = {
    "vocab_size": 120,
    "hidden_size": 64,
    "intermediate_size": 112,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 3,
    "max_position_embeddings": 256,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
MIXTURE = {"moe_intermediate_size": 24, "num_experts": 8, "num_experts_per_tok": 3}
TINY = [
    ("Llama", {"tie_word_embeddings": True}),
    ("Llama", {"attention_bias": True, "mlp_bias": True, "num_key_value_heads": 4}),
    ("Mistral", {"sliding_window": None}),
    ("Qwen2", {}),
    ("Qwen3", {"head_dim": 24}),
    ("Qwen3", {"head_dim": 24, "attention_bias": True, "tie_word_embeddings": True}),
    ("Qwen3Moe", {"head_dim": 24, **MIXTURE}),
    ("Qwen3Moe", {"head_dim": 24, **MIXTURE, "mlp_only_layers": [1]}),
    ("Gemma2", {"head_dim": 24}),
    ("Gemma3Text", {"head_dim": 24}),
]


def _tiny(family: str, fields: dict[str, Any], **changes: Any) -> Any:
    return getattr(transformers, f"{family}Config")(**(SMALL | fields | changes))


def _on_meta(config: Any) -> Any:
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config)


@pytest.mark.parametrize(("family", "fields"), TINY)
def test_every_parameter_is_counted(family: str, fields: dict[str, Any]) -> None:
    config = _tiny(family, fields)
    real = {name: tuple(weight.shape) for name, weight in _on_meta(config).named_parameters()}
    assert {tensor.name: tensor.shape for tensor in tensors(read_config(config.to_dict()))} == real


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("Qwen3-30B-A3B", 30_532_122_624),
        ("Qwen3-8B", 8_190_735_360),
        ("Qwen3-4B", 4_022_468_096),
        ("SmolLM2-135M-Instruct", 134_515_008),
    ],
)
def test_published_models(name: str, count: int, tmp_path: Path) -> None:
    config = read_config(f"owner/{name}")
    (tmp_path / "config.json").write_text(json.dumps(config))
    model = _on_meta(AutoConfig.from_pretrained(tmp_path))
    real = {name: tuple(weight.shape) for name, weight in model.named_parameters()}
    assert {tensor.name: tensor.shape for tensor in tensors(config)} == real
    assert parameters(read_config(tmp_path)) == count
    adapted = get_peft_model(model, adapter_config(model, targets="auto", r=16, alpha=32))
    mine = sum(tensor.size for tensor in adapter_tensors(config, "auto", 16))
    assert mine == sum(weight.numel() for weight in adapted.parameters() if weight.requires_grad)


@pytest.mark.parametrize(("family", "fields"), TINY)
@pytest.mark.parametrize("targets", ["auto", "attention", "all-linear", "q_proj, v_proj", ",".join(ALL)])
def test_adapter_is_counted(family: str, fields: dict[str, Any], targets: str) -> None:
    config = _tiny(family, fields)
    model = _on_meta(config)
    dense_too = "mlp_only_layers" in fields and targets == "all-linear"
    if dense_too or ("num_experts" in fields and "gate_proj" in targets):
        with pytest.raises(ShapeError, match="fused experts"):
            adapter_tensors(read_config(config.to_dict()), targets, 8)
        with pytest.raises(ConfigError):
            adapter_config(model, targets=targets, r=8, alpha=16)
        return
    model = get_peft_model(model, adapter_config(model, targets=targets, r=8, alpha=16))
    real = sorted(tuple(weight.shape) for weight in model.parameters() if weight.requires_grad)
    assert sorted(tensor.shape for tensor in adapter_tensors(read_config(config.to_dict()), targets, 8)) == real


def _kept(config: Any, length: int, targets: list[str], *, low: bool, checkpointing: bool) -> int:
    """Return the bytes that one forward pass of two rows leaves for the backward pass, as autograd saves them."""
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16 if low else torch.float32)
    add_fused_lm_head(model, outputs=("log_probs", "entropy"))
    model = get_peft_model(model, LoraConfig(r=8, target_modules=targets, task_type="CAUSAL_LM"))
    if checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
        model.enable_input_require_grads()
    model.train()
    weights = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
    kept: dict[int, torch.UntypedStorage] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage
        return tensor

    ids = torch.randint(3, config.vocab_size, (2, length))
    with (
        torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor),
        torch.autocast("cpu", dtype=torch.bfloat16, enabled=low),
    ):
        model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=ids, fused_lm_head=True)
    return sum(storage.nbytes() for storage in kept.values())


def _per_layer_and_token(family: str, fields: dict[str, Any], targets: list[str], **how: Any) -> float:
    """Return the bytes a layer and token: second differences leave out what is kept once a model or a layer."""
    deep, flat = (_tiny(family, fields, num_hidden_layers=layers) for layers in (2, 1))
    (a, b), (c, d) = ([_kept(config, length, targets, **how) for length in (40, 60)] for config in (flat, deep))
    return ((d - c) - (b - a)) / (2 * 20)


@pytest.mark.parametrize(
    ("family", "fields", "targets"),
    [
        ("Qwen3", {"head_dim": 24}, ATTENTION),
        ("Qwen3", {"head_dim": 24}, ALL),
        ("Qwen3Moe", {"head_dim": 24, **MIXTURE}, ATTENTION),
        ("Llama", {}, ["q_proj", "v_proj"]),
        ("Gemma3Text", {"head_dim": 24, "layer_types": ["full_attention"] * 2}, ATTENTION),
    ],
)
@pytest.mark.parametrize("low", [True, False])
def test_activations_are_what_autograd_keeps(
    family: str, fields: dict[str, Any], targets: list[str], low: bool
) -> None:
    if "layer_types" in fields:
        fields = {**fields, "layer_types": None}
    config = read_config(_tiny(family, fields).to_dict())
    real = _per_layer_and_token(family, fields, targets, low=low, checkpointing=False)
    assert layer_bytes(config, 0, targets, 8, 2 if low else 4) == real


def test_checkpointing_keeps_the_input_of_each_layer() -> None:
    fields = {"head_dim": 24, **MIXTURE}
    real = _per_layer_and_token("Qwen3Moe", fields, ATTENTION, low=True, checkpointing=True)
    assert real == 2 * SMALL["hidden_size"]


def test_kv_cache_of_a_real_generation() -> None:
    config = _tiny("Qwen3", {"head_dim": 24})
    model = AutoModelForCausalLM.from_config(config)
    cache = model(input_ids=torch.randint(3, 120, (2, 17)), use_cache=True).past_key_values
    real = sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers)
    assert kv_bytes_per_token(read_config(config.to_dict()), 4) * 2 * 17 == real


def test_table_adds_up_and_scales() -> None:
    config = read_config("Qwen3-30B-A3B")
    one = estimate(config, Run(gpu_gib=139, context=8192, sampled_rows=8))
    assert one.peak == one.phase("always") + max(one.phase("sampling"), one.phase("update"))
    assert one.fits
    assert not estimate(config, Run(gpu_gib=80, context=16384)).fits  # whole weights and their cache
    sharded = estimate(config, Run(gpus=8, sharding="fsdp2", sampling="vllm-server", context=8192))
    named = {line.name: line.bytes for line in sharded.lines}
    assert named["base weights"] == parameters(config) * 2 // 8
    double = estimate(config, Run(gpus=8, sharding="fsdp2", sampling="vllm-server", context=16384))
    moved = {line.name: line.bytes for line in double.lines}
    assert moved["layer inputs"] == 2 * named["layer inputs"] == 2 * 48 * 8192 * 2048 * 2
    kept_whole = estimate(
        config, Run(gpus=8, sharding="fsdp2", sampling="vllm-server", context=8192, checkpointing=False)
    )
    assert kept_whole.peak > sharded.peak
    rows = most_rows(config, sharded.run)
    assert rows >= 1
    assert not estimate(config, Run(gpus=8, sharding="fsdp2", sampling="vllm-server", context=8192, rows=rows + 1)).fits


def test_vllm_share_too_small_for_the_weights_is_said() -> None:
    config = read_config("Qwen3-30B-A3B")
    run = Run(gpus=8, sharding="zero3", sampling="vllm-colocate", vllm_share=0.3)
    table = estimate(config, run)
    assert not table.fits
    assert "vllm_tensor_parallel_size" in table.notes[0]
    sleeping = Run(
        gpus=8, sharding="zero3", sampling="vllm-colocate", vllm_share=0.45, vllm_parallel=4, vllm_sleeps=True
    )
    assert estimate(config, sleeping).fits
    assert estimate(config, sleeping).longest_rows == 29
    wide = Run(gpus=8, sharding="zero3", sampling="vllm-colocate", vllm_share=0.3, vllm_parallel=8)
    assert estimate(config, wide).longest_rows == 22, "4 key-value heads cannot be divided over 8 GPUs"


def test_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["Qwen3-4B", "--context", "4096"]) == 0
    assert "4,022,468,096 parameters" in capsys.readouterr().out
    assert main(["Qwen3-30B-A3B", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["fits"] is False
    assert main([str(tmp_path)]) == 2
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    assert main([str(tmp_path)]) == 2
    assert "qwen3_moe" in capsys.readouterr().err


def test_run_of_a_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings: dict[str, Any] = {"output_dir": str(tmp_path), "max_steps": 1, "use_cpu": True, "bf16": False}
    config = read_config("Qwen3-4B")
    plain = SpadeConfig(**settings, per_device_train_batch_size=2, context_tokens=4096, lora_r=8)
    run = run_of(plain, config)
    assert (run.rows, run.context, run.rank, run.width, run.sampling, run.sharding) == (
        2, 4096, 8, 4, "transformers", "none",
    )  # fmt: skip
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "true")
    server = SpadeConfig(**settings, use_vllm=True, vllm_mode="server", gradient_checkpointing=False)
    run = run_of(server, config, gpus=8)
    assert (run.context, run.sampling, run.sharding, run.checkpointing) == (40960, "vllm-server", "fsdp2", False)
    assert estimate(config, run).peak > 0


def test_tables_of_the_guide_are_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "scaling.md").read_text(encoding="utf-8")
    commands = re.findall(r"`python -m spade_train\.arithmetic (Qwen[^`]+)`", guide)
    assert len(commands) == 2
    for command in commands:
        main(command.split())
        for line in capsys.readouterr().out.splitlines()[2:]:
            assert line in guide


def test_what_would_make_it_fit_is_named_and_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["Qwen3-8B"]) == 1
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("To fit")]
    assert "--sampled-rows" in line
    options = line.removeprefix("To fit, one of: ").removesuffix(".").split("; ")
    assert len(options) >= 3
    for option in options:
        assert main(["Qwen3-8B", *option.split()]) == 0, option
    assert "To fit" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "run",
    [
        Run(rows=64, sampling="vllm-server"),
        Run(checkpointing=False, context=8192),
        Run(sampling="vllm-colocate", vllm_share=0.1),
        Run(sampling="vllm-colocate", vllm_share=0.7),
        Run(gpu_gib=24, context=8192),
        Run(gpus=8, sharding="zero3", gpu_gib=40, context=65_536),
    ],
)
def test_a_remedy_is_the_mildest_of_its_kind(run: Run) -> None:
    config = read_config("Qwen3-8B")
    assert not estimate(config, run).fits
    found = remedies(config, run)
    assert found
    for remedy in found:
        assert estimate(config, remedy.run).fits
        for name in ("rows", "sampled_rows"):
            if (count := getattr(remedy.run, name)) != getattr(run, name):
                assert not estimate(config, replace(run, **{name: count + 1})).fits
    assert remedies(config, Run(gpu_gib=1000)) == []


def test_where_no_single_change_suffices_that_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["Qwen3-8B", "--rows", "64"]) == 1
    assert "To fit: --rows 1 --sampled-rows 1." in capsys.readouterr().out
    assert main(["Qwen3-8B", "--rows", "64", "--gpu-gib", "32"]) == 1
    assert "To fit: --rows 1 --sampled-rows 1, and one of: --context" in capsys.readouterr().out
    assert main(["Qwen3-30B-A3B", "--gpu-gib", "4", "--rows", "4"]) == 1
    assert "No single change" in capsys.readouterr().out


def test_every_model_that_may_be_trained_has_its_shape(capsys: pytest.CaptureFixture[str]) -> None:
    for name in shipped():
        assert main([name, "--gpu-gib", "300"]) == 0
    assert "8,192 tokens" in capsys.readouterr().out  # all that SmolLM2 takes, where the default is more
    assert parameters(read_config("nano")) == 614_336
    assert read_config("smollm2") == read_config("hf:HuggingFaceTB/SmolLM2-135M-Instruct")
    assert main(["nobody/nothing"]) == 2
    said = capsys.readouterr().err
    assert all(name in said for name in shipped())
    assert "hf download nobody/nothing config.json" in said


@pytest.mark.parametrize("option", [("--rows", "-1"), ("--gpus", "0"), ("--gpu-gib", "-3"), ("--vllm-share", "7")])
def test_impossible_sizes_are_refused(option: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["Qwen3-4B", *option]) == 2
    assert option[1].strip("-") in capsys.readouterr().err
