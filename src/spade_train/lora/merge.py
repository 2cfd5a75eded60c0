"""The policy's weights with the adapter folded in, one tensor at a time and without touching the policy.

``peft`` merges in place and takes the merge back after use. In bfloat16 the two roundings do not cancel, so the base
weights drift with every synchronisation. Here ``weight + delta`` goes into a new tensor: nothing can drift, and one
weight matrix more than the policy is held at any time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

import torch
from torch import Tensor, nn

Gather = Callable[[list[nn.Parameter]], contextlib.AbstractContextManager[Any]]
"""Makes the parameters whole while it is open; needed under DeepSpeed ZeRO-3."""

_PREFIX = "base_model.model."
_PACKED = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"))
"""Layers that engines keep as one: they load all of one or none."""


class MergeError(RuntimeError):
    """The adapter cannot be folded into the weights; the message says which layer, and what to do."""


def merged_weights(
    model: nn.Module, *, everything: bool = False, gather: Gather | None = None
) -> Iterator[tuple[str, Tensor]]:
    """Yield the weights that the active adapters change, merged, under the names of the model's checkpoints.

    Fused experts come apart into the checkpoint's tensors for each expert. With a changed weight come those that
    engines keep in one piece with it: query, key and value; gate and up; the bias. Sharded parameters are gathered,
    so with FSDP2 or ZeRO-3 every rank must iterate to the end.

    Args:
        model: a ``peft.PeftModel`` with LoRA adapters.
        everything: yield the other weights of the model too.
        gather: makes partitioned parameters whole, under DeepSpeed ZeRO-3.

    Raises:
        MergeError: if an adapter is of a kind that is no sum of weight and delta, or the weights are quantised.
    """
    layers = {f"{_plain(name)}.{_adapted(layer)}": layer for name, layer in _adapted_layers(model)}
    changed = {_piece(name) for name in layers}
    named = _checkpoint_names(model)
    for name, parameter in model.named_parameters():
        plain = _plain(name)
        if ".lora_" in name or "lora_embedding_" in name or "original_module" in name:
            continue
        if not everything and _piece(plain) not in changed:
            continue
        layer = layers.get(plain)
        parts = [parameter, *([] if layer is None else _factors(layer))]
        with torch.no_grad(), gather(parts) if gather else contextlib.nullcontext():
            value = whole(parameter) if layer is None else merged(layer)
            yield from named(plain, value)


def merged(layer: Any) -> Tensor:
    """Return the weight of one LoRA layer plus the deltas of its active adapters, as a new tensor.

    Equal to what ``peft`` leaves in place after ``merge``, bit for bit.
    """
    weight = getattr(layer.get_base_layer(), _adapted(layer))
    if not weight.is_floating_point():
        raise MergeError(
            f"weights of type {weight.dtype} cannot be merged exactly: the base is quantised. Keep the adapter apart "
            f"(lora_sync: adapter), or load the base without quantisation"
        )
    total = whole(weight).clone()
    for adapter in layer.active_adapters:
        if adapter in layer.lora_A or adapter in getattr(layer, "lora_embedding_A", {}):
            total += delta(layer, adapter)  # in place: rounded to the type of the weight, as peft does
    return total


def delta(layer: Any, adapter: str) -> Tensor:
    """Return what one adapter adds to the layer's weight; sharded factors are gathered."""
    if adapter in layer.lora_variant or layer.lora_bias.get(adapter):
        raise MergeError(
            f"adapter {adapter!r} of a {type(layer).__name__} is not plain LoRA (DoRA or another variant, or a bias): "
            f"it cannot be merged here. Use a plain LoRA adapter"
        )
    sharded = [factor for factor in _factors(layer) if _is_sharded(factor)]
    if not sharded:
        return cast(Tensor, layer.get_delta_weight(adapter))
    down, up = whole(layer.lora_A[adapter].weight), whole(layer.lora_B[adapter].weight)
    experts = int(getattr(layer, "num_experts", 1))
    if experts == 1:
        return cast(Tensor, (up @ down) * layer.scaling[adapter])
    down = down.reshape(experts, -1, down.shape[-1])  # (experts, rank, in)
    up = up.reshape(up.shape[0], -1, experts)  # (out, rank, experts)
    equation = "o r e, e r i -> e o i" if layer._did_swap_in_out_features else "o r e, e r i -> e i o"
    added = torch.einsum(equation, up, down) * float(layer.scaling[adapter])
    return added.to(layer.get_param().dtype)


def whole(parameter: Tensor) -> Tensor:
    """Return the parameter's data, gathered from all ranks if it is sharded (FSDP2)."""
    if not _is_sharded(parameter):
        return parameter.detach()
    if parameter.is_cpu and torch.cuda.is_available():  # offloaded: the ranks talk through their GPUs
        parameter = parameter.to("cuda")
    gathered: Tensor = cast(Any, parameter).full_tensor()
    return gathered.detach()


def _is_sharded(tensor: Tensor) -> bool:
    from torch.distributed.tensor import DTensor

    return isinstance(tensor, DTensor)


def _adapted_layers(model: nn.Module) -> Iterable[tuple[str, Any]]:
    from peft.tuners.lora import LoraLayer

    return [(name, module) for name, module in model.named_modules() if isinstance(module, LoraLayer)]


def _adapted(layer: Any) -> str:
    """Return the name of the parameter that the layer adapts."""
    return str(getattr(layer, "parameter_name", "weight"))


def _factors(layer: Any) -> list[nn.Parameter]:
    return [parameter for name, parameter in layer.named_parameters() if "lora_" in name and "base_layer." not in name]


def _plain(name: str) -> str:
    """Return the name that a module or parameter has in the model without adapters."""
    name = name.removeprefix(_PREFIX).replace(".base_layer", "").replace("modules_to_save.default.", "")
    return name.replace("_checkpoint_wrapped_module.", "").replace("_orig_mod.", "")


def _piece(name: str) -> str:
    """Return a name that is the same for all parameters that engines keep in one piece with this one."""
    module = name.rpartition(".")[0]
    parent, _, leaf = module.rpartition(".")
    for group in _PACKED:
        if leaf in group:
            return f"{parent}.{group[0]}"
    return module


def _checkpoint_names(model: nn.Module) -> Callable[[str, Tensor], Iterable[tuple[str, Tensor]]]:
    """Return what gives a tensor the names that it has in checkpoints of the model's family."""
    from transformers import PreTrainedModel
    from transformers.conversion_mapping import get_model_conversion_mapping
    from transformers.core_model_loading import revert_weight_conversion

    base: Any = getattr(model, "get_base_model", lambda: model)()
    if not isinstance(base, PreTrainedModel):
        return lambda name, value: [(name, value)]
    conversions = getattr(base, "_weight_conversions", None)  # set by from_pretrained
    if not (get_model_conversion_mapping(base, add_legacy=False) if conversions is None else conversions):
        return lambda name, value: [(name, value)]
    return lambda name, value: revert_weight_conversion(base, {name: value}).items()
