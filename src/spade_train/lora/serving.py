"""What vLLM takes as a LoRA adapter, checked here before a server or an engine fails on it.

After vLLM's ``PEFTHelper`` and ``LoRAModel.from_local_checkpoint`` (0.22 to 0.31): plain LoRA factors of linear
layers, one rank and one scale for all, under ``base_model.model.<module>.lora_A.weight`` names. What PEFT can do
besides is refused there, or silently ignored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

SERVED_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""Values that vLLM takes for ``max_lora_rank``."""

_KEY = re.compile(r"base_model\.model\.(?P<module>[\w.]+)\.lora_[AB]\.weight")
_REQUIRED = ("r", "lora_alpha", "target_modules")
_OUTSIDE = ("lm_head", "embed_tokens", "embed_out", "wte")


class ServingError(ValueError):
    """An adapter that vLLM would refuse, or serve other than it was trained."""


def served_rank(r: int) -> int:
    """Return the smallest ``max_lora_rank`` of vLLM that holds rank ``r``.

    Raises:
        ServingError: if there is none.
    """
    for rank in SERVED_RANKS:
        if rank >= r:
            return rank
    raise ServingError(f"vLLM serves adapters up to rank {SERVED_RANKS[-1]}, got {r}: lower lora_r, or merge")


def check_servable(
    config: Mapping[str, Any], keys: Iterable[str] = (), *, max_rank: int | None = None, head: bool = False
) -> None:
    """Check an adapter against what vLLM can serve.

    Args:
        config: its ``adapter_config.json``, or ``LoraConfig.to_dict()``.
        keys: the names of its tensors.
        max_rank: the engine's ``max_lora_rank``.
        head: whether adapters of the output head are allowed; vLLM leaves them out of prompt log-probabilities.

    Raises:
        ServingError: naming everything that is wrong.
    """
    wrong = [f"adapter_config.json lacks {name}" for name in _REQUIRED if not config.get(name)]
    if config.get("peft_type", "LORA") not in ("LORA", None):
        wrong.append(f"peft_type is {config['peft_type']}, not LORA")
    if modules := config.get("modules_to_save"):
        wrong.append(f"modules_to_save holds fully trained modules ({', '.join(modules)})")
    if config.get("use_dora"):
        wrong.append("use_dora: magnitudes have no place in vLLM's adapters")
    if (bias := config.get("bias", "none")) != "none" or config.get("lora_bias"):
        wrong.append(f"biases are trained (bias={bias!r}); vLLM drops them")
    if parameters := config.get("target_parameters"):
        wrong.append(f"target_parameters: experts fused into one parameter ({', '.join(parameters)})")
    if config.get("rank_pattern") or config.get("alpha_pattern"):
        wrong.append("rank_pattern or alpha_pattern: vLLM scales every layer by lora_alpha and r")
    rank = int(config.get("r") or 0)
    if max_rank is not None and rank > max_rank:
        wrong.append(f"rank {rank} is above the engine's max_lora_rank {max_rank}; start it with {served_rank(rank)}")
    targets = config.get("target_modules") or []
    named = [targets] if isinstance(targets, str) else list(targets)
    if not head and (outside := [name for name in named if any(part in name for part in _OUTSIDE)]):
        wrong.append(f"target_modules names the head or the embeddings ({', '.join(outside)})")
    for key in keys:
        if _KEY.fullmatch(key) is None or ".base_layer." in key:
            wrong.append(f"tensor {key} is not named base_model.model.<module>.lora_A.weight or lora_B.weight")
            break
    if wrong:
        raise ServingError("vLLM cannot serve this adapter: " + "; ".join(wrong))


def check_folder(folder: str | Path, *, max_rank: int | None = None) -> None:
    """Check a saved adapter, as :func:`check_servable`.

    Raises:
        ServingError: also if a file is missing.
    """
    from safetensors import safe_open

    path = Path(folder)
    weights = path / "adapter_model.safetensors"
    for file in (path / "adapter_config.json", weights):
        if not file.is_file():
            raise ServingError(f"{file} is missing: expected an adapter saved by peft")
    config = json.loads((path / "adapter_config.json").read_text(encoding="utf-8"))
    with safe_open(weights, framework="pt") as tensors:
        keys = list(tensors.keys())
    if not keys:
        raise ServingError(f"{weights} holds no tensor")
    check_servable(config, keys, max_rank=max_rank)


def engine_arguments(r: int) -> dict[str, Any]:
    """Return the arguments of ``vllm.LLM`` with which an engine serves a policy's adapter of rank ``r``."""
    return {"enable_lora": True, "max_lora_rank": served_rank(r), "max_loras": 1, "max_cpu_loras": 2}
