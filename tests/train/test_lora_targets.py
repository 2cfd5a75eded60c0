"""What an adapter touches, on tiny random models of each family."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from families import DENSE, MIXTURES, family_model, with_adapter
from peft import LoraConfig, get_peft_model
from torch import nn

from spade_envs.models.transformers import NANO_FOLDER
from spade_train.config import ConfigError, SpadeConfig
from spade_train.lora.targets import adapter_config, adapter_parameters, resolve_targets

ATTENTION = ("k_proj", "o_proj", "q_proj", "v_proj")
LINEAR = ("down_proj", "gate_proj", "k_proj", "o_proj", "q_proj", "up_proj", "v_proj")
EXPERTS = ("experts.down_proj", "experts.gate_up_proj")


def _adapted(policy: Any) -> set[str]:
    """Return the modules and parameters that the adapter has factors for, by their names in the plain model."""
    found = set()
    for name, module in policy.named_modules():
        if hasattr(module, "lora_A"):
            plain = name.removeprefix("base_model.model.").replace(".base_layer", "")
            found.add(f"{plain}.{module.parameter_name}" if hasattr(module, "parameter_name") else plain)
    return found


@pytest.mark.parametrize("family", DENSE)
def test_auto_takes_all_linear_layers_of_a_dense_model(family: str) -> None:
    model = family_model(family)
    linear = {name for name, module in model.named_modules() if isinstance(module, nn.Linear)} - {"lm_head"}
    assert resolve_targets(model, "auto").modules == LINEAR
    assert _adapted(with_adapter(model)) == linear
    assert resolve_targets(family_model(family), "attention").modules == ATTENTION


@pytest.mark.parametrize("family", MIXTURES)
@pytest.mark.parametrize("targets", ["auto", "attention", "all-linear", "attention,experts"])
def test_no_keyword_touches_a_router_a_head_or_an_embedding(family: str, targets: str) -> None:
    model = family_model(family)
    routers = {name for name, module in model.named_modules() if name.endswith((".gate", "shared_expert_gate"))}
    assert routers
    policy = with_adapter(model, targets)
    adapted = _adapted(policy)
    assert not adapted & (routers | {"lm_head", "model.embed_tokens"})
    assert any("experts." in name for name in adapted) == ("experts" in targets)
    trained = {name for name, parameter in policy.named_parameters() if parameter.requires_grad}
    assert trained
    assert all(".lora_" in name for name in trained)


@pytest.mark.parametrize("family", MIXTURES)
def test_auto_takes_attention_of_a_mixture(family: str) -> None:
    assert resolve_targets(family_model(family), "auto").modules == ATTENTION


def test_plain_all_linear_of_peft_would_adapt_a_router() -> None:
    model = family_model("qwen2_moe")
    policy = get_peft_model(model, LoraConfig(r=2, target_modules="all-linear"))
    assert any(name.endswith("shared_expert_gate") for name in _adapted(policy))


def test_shared_experts_are_told_from_fused_ones() -> None:
    model = family_model("qwen2_moe")
    assert set(resolve_targets(model, "all-linear").modules) == set(LINEAR)
    assert resolve_targets(model, "experts").parameters == EXPERTS
    policy = with_adapter(model, "experts")
    assert not any("shared_expert" in name for name in _adapted(policy))


@pytest.mark.parametrize("targets", ["all-linear", "gate_proj,up_proj,down_proj", "gate_proj"])
def test_dense_layers_that_peft_would_take_for_experts_are_refused(targets: str) -> None:
    model = family_model("qwen3_moe", mlp_only_layers=[1])  # its dense layer has the names that experts once had
    with pytest.raises(ConfigError, match=r"takes .*gate_proj.* for its fused experts"):
        adapter_config(model, targets=targets, r=2, alpha=4)
    assert adapter_config(model, targets="attention,experts", r=2, alpha=4).target_parameters


def test_adapted_experts_compute_and_get_gradients() -> None:
    policy = with_adapter(family_model("qwen3_moe"), "attention,experts")
    ids = torch.arange(12)[None]
    logits = policy(ids).logits
    with policy.disable_adapter():
        assert not torch.allclose(logits, policy(ids).logits)
    logits.square().mean().backward()
    moved = {name for name, parameter in policy.named_parameters() if parameter.grad is not None}
    assert {name for name in moved if "experts" in name}
    assert all(".lora_" in name for name in moved)


def test_the_embedded_model_is_adapted_whole() -> None:
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(NANO_FOLDER)
    assert resolve_targets(model, "auto").modules == LINEAR
    assert SpadeConfig(output_dir="x", max_steps=1, use_cpu=True, bf16=False).lora_targets == "auto"


def test_names_and_keywords_go_together() -> None:
    model = family_model("qwen3")
    assert resolve_targets(model, "attention, up_proj").modules == ("k_proj", "o_proj", "q_proj", "up_proj", "v_proj")
    whole = resolve_targets(model, "model.layers.1.self_attn.q_proj").modules
    assert whole == ("1.self_attn.q_proj",)
    assert _adapted(get_peft_model(model, LoraConfig(r=2, target_modules=list(whole)))) == {
        "model.layers.1.self_attn.q_proj"
    }
    assert resolve_targets(family_model("llama"), "lm_head").modules == ("lm_head",)
    assert resolve_targets(family_model("qwen3_moe"), "gate_up_proj").parameters == ("experts.gate_up_proj",)


def test_a_vision_tower_is_left_alone() -> None:
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.vision = nn.ModuleDict({"self_attn": nn.ModuleDict({"q_proj": nn.Linear(2, 2)})})
            self.text = nn.ModuleDict({"self_attn": nn.ModuleDict({"q_proj": nn.Linear(2, 2)})})

        def get_decoder(self) -> nn.Module:
            return self.text

    assert resolve_targets(Both(), "attention").modules == ("text.self_attn.q_proj",)


@pytest.mark.parametrize(
    ("family", "targets", "said"),
    [
        ("qwen3", "q_porj", "did you mean q_proj"),
        ("qwen3", "experts", "no fused experts"),
        ("qwen3_moe", "gate", "router"),
        ("qwen2_moe", "shared_expert_gate", "router"),
        ("gemma2", "lm_head", "tied"),
        ("qwen3", "self_attn", "expected linear layers"),
    ],
)
def test_what_cannot_be_adapted_is_refused(family: str, targets: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        resolve_targets(family_model(family), targets)


def test_unknown_names_are_refused_with_what_exists() -> None:
    with pytest.raises(ConfigError, match=r"auto, attention, all-linear, experts, .*down_proj, .*gate_proj, "):
        resolve_targets(family_model("llama"), "wq")


@pytest.mark.parametrize("family", ["qwen3", "qwen3_moe"])
def test_size_of_an_adapter_is_known_without_weights(family: str) -> None:
    targets = "all-linear" if family == "qwen3" else "attention,experts"
    policy = with_adapter(family_model(family), targets, r=4)
    real = sum(parameter.numel() for parameter in policy.parameters() if parameter.requires_grad)
    with torch.device("meta"):
        model = family_model(family)
    assert adapter_parameters(model, resolve_targets(model, targets), 4) == real


def test_rslora_scales_by_the_root_of_the_rank() -> None:
    model = family_model("qwen3")
    policy = get_peft_model(model, adapter_config(model, targets="q_proj", r=16, alpha=32, rslora=True))
    layer = policy.get_submodule("base_model.model.model.layers.0.self_attn.q_proj")
    assert layer.scaling == {"default": 8.0}
