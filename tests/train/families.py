"""Tiny random models of the families that the trainer knows, and adapters on them."""

from __future__ import annotations

from typing import Any

import torch
from peft import get_peft_model
from transformers import AutoConfig, AutoModelForCausalLM

from spade_train.lora.targets import adapter_config

_SIZES: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "max_position_embeddings": 64,
}
_EXPERTS: dict[str, Any] = {
    "num_experts": 4,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
    "shared_expert_intermediate_size": 16,
    "decoder_sparse_step": 1,
}
DENSE = ("qwen3", "qwen2", "llama", "mistral", "gemma2", "gemma3_text")
MIXTURES = ("qwen3_moe", "qwen2_moe", "mixtral")


def family_model(model_type: str, dtype: torch.dtype = torch.float32, **changes: Any) -> Any:
    """Return a tiny random model of one family."""
    torch.manual_seed(0)
    sizes = _SIZES | (_EXPERTS if model_type in MIXTURES else {}) | changes
    return AutoModelForCausalLM.from_config(AutoConfig.for_model(model_type, **sizes)).to(dtype)


def with_adapter(model: Any, targets: str = "auto", *, r: int = 4, spread: float = 0.05) -> Any:
    """Return the model with an adapter that does something: its second factor is random."""
    policy = get_peft_model(model, adapter_config(model, targets=targets, r=r, alpha=2 * r))
    torch.manual_seed(1)
    with torch.no_grad():
        for name, parameter in policy.named_parameters():
            if "lora_B" in name:
                parameter.normal_(0.0, spread)
    return policy
