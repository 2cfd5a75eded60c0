"""What the backward pass keeps of one layer, in bytes a token.

The list follows transformers' own modules with peft's LoRA around some of them, as autograd saves it (a test compares
it with ``torch.autograd.graph.saved_tensors_hooks`` for equality). Base weights are frozen, so the input of a linear
module is kept only where an adapter needs it. Attention is a fused kernel (flash, SDPA): it keeps its inputs, its
output and one number a head and token, never the square matrix of scores; that leaves the terms of Korthikanti et al.
(arXiv 2205.05198), without their ``5 a s / h``, counted for today's layers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from spade_train.arithmetic.shapes import GEMMA, QK_NORM, head_dim, is_sparse, key_value_heads, targeted

SINGLE = 4  # bytes of float32


def layer_bytes(config: Mapping[str, Any], layer: int, targets: str | Iterable[str], rank: int, width: int = 2) -> int:
    """Return the bytes a token that one layer keeps until its backward pass.

    Args:
        config: the model.
        layer: which layer.
        targets: modules with an adapter.
        rank: of the adapter.
        width: bytes of the compute type: 2 for bfloat16 autocast, 4 for float32.
    """
    hidden, heads, keys = int(config["hidden_size"]), int(config["num_attention_heads"]), key_value_heads(config)
    queries, values = heads * head_dim(config), keys * head_dim(config)
    norms = 4 if config["model_type"] in GEMMA else 2
    total = norms * SINGLE * (hidden + 1)  # norms work in float32 and keep their input and its scale
    if config["model_type"] in QK_NORM:
        total += SINGLE * (queries + heads + values + keys)  # norms of queries and keys
    total += width * (2 * queries + 2 * values) + SINGLE * heads  # q, k, v, output, log-sum-exp
    adapted = targeted(config, layer, targets)
    total += width * rank * len(adapted)
    total += _adapter_inputs([module.name.rsplit(".", 1)[1] for module in adapted], config, queries, width)
    if is_sparse(config, layer):
        inner, experts, active = (
            int(config[name]) for name in ("moe_intermediate_size", "num_experts", "num_experts_per_tok")
        )
        total += SINGLE * experts + 8 * active  # router: probabilities, chosen experts
        total += 3 * 8 * active + width * active  # order of tokens by expert, weights
        total += width * active * (hidden + 3 * inner)  # outputs; gate, up, activation
    else:
        total += 3 * width * int(config["intermediate_size"])  # gate, its activation, up
    return total


def in_flight_bytes(config: Mapping[str, Any], layer: int, width: int = 2) -> int:
    """Return the bytes a token of the gradients that are alive at once in the widest part of a layer.

    Not derived from autograd but a bound: the gradients of the feed-forward's three inner tensors, its input and its
    output.
    """
    hidden = int(config["hidden_size"])
    if is_sparse(config, layer):
        active = int(config["num_experts_per_tok"])
        return width * active * (2 * hidden + 3 * int(config["moe_intermediate_size"]))
    return width * (2 * hidden + 3 * int(config["intermediate_size"]))


def _adapter_inputs(names: list[str], config: Mapping[str, Any], queries: int, width: int) -> int:
    """Return the bytes of what adapted modules keep of their inputs.

    peft casts the input to the adapter's float32 and autocast casts it back, so in bfloat16 every adapted module
    keeps a copy of its own; in float32 they share what is there.
    """
    hidden, inner = int(config["hidden_size"]), int(config["intermediate_size"])
    sizes = {"o_proj": queries, "down_proj": inner}
    if width < SINGLE:
        return width * sum(sizes.get(name, hidden) for name in names)
    sources = {"attention" if name in ("q_proj", "k_proj", "v_proj") else "feed" for name in names
               if name not in sizes}  # fmt: skip
    return width * (hidden * len(sources) + (inner if "down_proj" in names else 0))
