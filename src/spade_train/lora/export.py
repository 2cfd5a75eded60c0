"""How the adapter leaves a run: the folder for ``peft`` and ``vllm --lora-modules``, and merged weights."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from spade_train.lora.merge import Gather, merged_weights, whole

DTYPES = ("bfloat16", "float16", "float32")


def save_adapter(model: Any, folder: str | Path, *, write: bool = True, gather: Gather | None = None) -> Path:
    """Write the active adapter in ``peft``'s form, whole or not at all.

    Collective under FSDP2 and ZeRO-3: every rank calls, and the one with ``write`` writes. A reader sees the old
    folder, for a moment none, or the new one; never a part.

    Args:
        model: a ``peft.PeftModel``.
        folder: what to write; replaced if it exists.
        write: whether this rank writes.
        gather: makes partitioned parameters whole, under DeepSpeed ZeRO-3.
    """
    target = Path(os.path.abspath(folder))
    adapter = model.active_adapters[0]
    factors = {name: parameter for name, parameter in model.named_parameters() if "lora_" in name}
    with gather(list(factors.values())) if gather else contextlib.nullcontext():
        tensors = {_unwrapped(name): whole(parameter).cpu().clone() for name, parameter in factors.items()}
    if not write:
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    model.save_pretrained(temporary, state_dict=tensors, selected_adapters=[adapter], safe_serialization=True)
    _replace(temporary if adapter == "default" else temporary / adapter, target)
    shutil.rmtree(temporary, ignore_errors=True)
    return target


def save_merged(
    model: Any, folder: str | Path, *, dtype: str | None = None, write: bool = True, gather: Gather | None = None
) -> Path:
    """Write a whole model with the adapter folded in, as ``transformers`` and vLLM load it.

    The model in memory is not touched. Collective under FSDP2, as :func:`save_adapter`; the rank that writes holds
    all weights in CPU memory.

    Args:
        model: a ``peft.PeftModel``.
        folder: what to write; replaced if it exists.
        dtype: of the weights; by default as they are.
        write: whether this rank writes.
        gather: makes partitioned parameters whole, under DeepSpeed ZeRO-3.
    """
    import torch

    target = Path(os.path.abspath(folder))
    kind = None if dtype is None else getattr(torch, dtype)
    base: nn.Module = model.get_base_model()
    weights: dict[str, Tensor] = {}
    for name, value in merged_weights(model, everything=True, gather=gather):
        if write:  # the others only take part in gathering
            weights[name] = value.to("cpu", kind if value.is_floating_point() else None, copy=True).contiguous()
    if not write:
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    _write_model(base, weights, temporary, kind)
    _replace(temporary, target)
    return target


def export_merged(
    adapter: str | Path, out: str | Path, *, base: str | None = None, dtype: str | None = None, device: str = "cpu"
) -> Path:
    """Merge a saved adapter into its base model and write the whole model and its tokenizer.

    Args:
        adapter: a folder with an adapter, e.g. ``<run>/adapter``.
        out: where the merged model goes.
        base: the base model, a folder or Hugging Face id; by default the one that the adapter names.
        dtype: of the merged weights: one of :data:`DTYPES`; by default that of the base.
        device: where to merge.

    Raises:
        ValueError: if the folder holds no adapter, or ``dtype`` is not known.
        ModelError: if the base model cannot be had.
    """
    from peft import PeftConfig, PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from spade_envs.models.pretrained import from_pretrained

    if dtype is not None and dtype not in DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, got {dtype!r}")
    if not (Path(adapter) / "adapter_config.json").is_file():
        raise ValueError(f"{adapter} holds no adapter: it has no adapter_config.json")
    name = base or PeftConfig.from_pretrained(str(adapter)).base_model_name_or_path
    model = from_pretrained(AutoModelForCausalLM, str(name), dtype="auto").to(device)
    target = save_merged(PeftModel.from_pretrained(model, str(adapter)), out, dtype=dtype)
    source = adapter if (Path(adapter) / "tokenizer_config.json").is_file() else name
    from_pretrained(AutoTokenizer, str(source)).save_pretrained(target)
    return target


def _unwrapped(name: str) -> str:
    """Return the name without what checkpointing and compilation put into it."""
    return name.replace("_checkpoint_wrapped_module.", "").replace("_orig_mod.", "")


def _write_model(base: Any, weights: dict[str, Tensor], folder: Path, dtype: Any) -> None:
    """Write weights under their checkpoint names, with the configurations of ``base``."""
    import copy

    from huggingface_hub import save_torch_state_dict

    config = copy.deepcopy(base.config)
    config.architectures = [type(base).__name__]
    if dtype is not None:
        config.dtype = dtype
    config.save_pretrained(folder)
    if base.can_generate() and base.generation_config is not None:
        base.generation_config.save_pretrained(folder)
    save_torch_state_dict(weights, str(folder), filename_pattern="model{suffix}.safetensors")


def _replace(new: Path, target: Path) -> None:
    """Put a finished folder in its place; what was there is removed only after."""
    old = target.with_name(f".{target.name}.{os.getpid()}.old")
    shutil.rmtree(old, ignore_errors=True)
    if target.exists():
        target.rename(old)
    new.rename(target)
    shutil.rmtree(old, ignore_errors=True)
