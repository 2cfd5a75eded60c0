"""The tensors of a model and of its LoRA adapter, from its ``config.json``.

Counted tensor by tensor as transformers 5 builds them (experts of a mixture are fused into two 3-D tensors a layer).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

CONFIGS = Path(__file__).parent / "configs"
FAMILIES = ("qwen3", "qwen3_moe", "qwen2", "llama", "mistral", "gemma2", "gemma3_text")
QK_NORM = ("qwen3", "qwen3_moe", "gemma3_text")
GEMMA = ("gemma2", "gemma3_text")
MIXTURES = ("qwen3_moe",)
_SMOLLM2 = ("smollm2", "SmolLM2-135M-Instruct")
_TIED = ("gemma2", "gemma3_text")  # where config.json may leave tie_word_embeddings out


class ShapeError(ValueError):
    """A model's configuration cannot be read, or its family is not known here."""


class Tensor(NamedTuple):
    """One parameter of a model."""

    name: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


class Linear(NamedTuple):
    """A linear module that an adapter can target."""

    name: str
    inputs: int
    outputs: int


def read_config(model: str | Path | Mapping[str, Any]) -> dict[str, Any]:
    """Return a model's configuration.

    Args:
        model: a mapping, a ``config.json`` or the folder that holds one, ``owner/name`` in the Hub's cache, or one of
            :func:`shipped`, with or without ``owner/``.

    Raises:
        ShapeError: if there is none, or its ``model_type`` is not known.
    """
    if isinstance(model, Mapping):
        config = dict(model)
    else:
        path = _config_file(model)
        try:
            config = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ShapeError(f"{path} is no JSON: {error}") from error
        if not isinstance(config, dict):
            raise ShapeError(f"{path}: expected a JSON object, the config.json of a model")
    config = {**config, **config.get("text_config", {})}
    if "num_local_experts" in config:  # transformers 5 saves the field under this name
        config.setdefault("num_experts", config["num_local_experts"])
    if config.get("model_type") not in FAMILIES:
        raise ShapeError(f"model_type must be one of {', '.join(FAMILIES)}, got {config.get('model_type')!r}")
    return config


def shipped() -> list[str]:
    """Return the names of the configurations that come with the package, those of our own models first."""
    return ["nano", _SMOLLM2[0], *sorted(file.stem for file in CONFIGS.glob("*.json"))]


def _config_file(model: str | Path) -> Path:
    name = str(model).removeprefix("hf:")
    if name == "nano":
        from spade_envs.models.transformers import NANO_FOLDER

        return NANO_FOLDER / "config.json"
    path = Path(name)
    path = path / "config.json" if path.is_dir() else path
    own = _SMOLLM2[1] if name == _SMOLLM2[0] else name.rsplit("/", 1)[-1]
    ours = CONFIGS / f"{own}.json"
    found = next((file for file in (path, ours, _cached_config(name)) if file is not None and file.is_file()), None)
    if found is None:
        raise ShapeError(
            f"{model}: expected a folder with config.json, that file, or one of {', '.join(shipped())}; for a model "
            f"on the Hub run `hf download {name} config.json` first"
        )
    return found


def _cached_config(name: str) -> Path | None:
    """Return the configuration of ``owner/name`` in the Hub's cache; nothing is fetched."""
    try:
        from huggingface_hub import try_to_load_from_cache

        found = try_to_load_from_cache(name, "config.json")
    except (ImportError, ValueError):  # ValueError: what cannot be a name on the Hub
        return None
    return Path(found) if isinstance(found, str) else None


def head_dim(config: Mapping[str, Any]) -> int:
    """Return the width of one attention head."""
    given = config.get("head_dim")
    return int(given or config["hidden_size"] // config["num_attention_heads"])


def key_value_heads(config: Mapping[str, Any]) -> int:
    """Return the number of key-value heads."""
    return int(config.get("num_key_value_heads") or config["num_attention_heads"])


def tied(config: Mapping[str, Any]) -> bool:
    """Return whether the output projection is the embedding matrix."""
    return bool(config.get("tie_word_embeddings", config["model_type"] in _TIED))


def is_sparse(config: Mapping[str, Any], layer: int) -> bool:
    """Return whether ``layer`` is a mixture of experts."""
    if config["model_type"] not in MIXTURES or layer in (config.get("mlp_only_layers") or ()):
        return False
    return (layer + 1) % int(config.get("decoder_sparse_step", 1)) == 0


def linears(config: Mapping[str, Any], layer: int) -> list[Linear]:
    """Return the linear modules of one layer. Routers and fused experts are none."""
    hidden, width = int(config["hidden_size"]), head_dim(config)
    queries, keys = config["num_attention_heads"] * width, key_value_heads(config) * width
    at = f"model.layers.{layer}"
    found = [
        Linear(f"{at}.self_attn.q_proj", hidden, queries),
        Linear(f"{at}.self_attn.k_proj", hidden, keys),
        Linear(f"{at}.self_attn.v_proj", hidden, keys),
        Linear(f"{at}.self_attn.o_proj", queries, hidden),
    ]
    if not is_sparse(config, layer):
        inner = int(config["intermediate_size"])
        found += [
            Linear(f"{at}.mlp.gate_proj", hidden, inner),
            Linear(f"{at}.mlp.up_proj", hidden, inner),
            Linear(f"{at}.mlp.down_proj", inner, hidden),
        ]
    return found


def layer_tensors(config: Mapping[str, Any], layer: int) -> list[Tensor]:
    """Return the parameters of one layer."""
    family, hidden, at = config["model_type"], int(config["hidden_size"]), f"model.layers.{layer}"
    result = []
    for module in linears(config, layer):
        result.append(Tensor(f"{module.name}.weight", (module.outputs, module.inputs)))
        if _has_bias(config, module.name):
            result.append(Tensor(f"{module.name}.bias", (module.outputs,)))
    if family in QK_NORM:
        result += [Tensor(f"{at}.self_attn.{one}_norm.weight", (head_dim(config),)) for one in "qk"]
    if is_sparse(config, layer):
        experts, inner = int(config["num_experts"]), int(config["moe_intermediate_size"])
        result += [
            Tensor(f"{at}.mlp.experts.gate_up_proj", (experts, 2 * inner, hidden)),
            Tensor(f"{at}.mlp.experts.down_proj", (experts, hidden, inner)),
            Tensor(f"{at}.mlp.gate.weight", (experts, hidden)),
        ]
    norms = ["input_layernorm", "post_attention_layernorm"]
    if family in GEMMA:
        norms += ["pre_feedforward_layernorm", "post_feedforward_layernorm"]
    return result + [Tensor(f"{at}.{norm}.weight", (hidden,)) for norm in norms]


def tensors(config: Mapping[str, Any]) -> list[Tensor]:
    """Return every parameter of the model; a tied output projection is counted once."""
    hidden, vocabulary = int(config["hidden_size"]), int(config["vocab_size"])
    result = [Tensor("model.embed_tokens.weight", (vocabulary, hidden))]
    for layer in range(int(config["num_hidden_layers"])):
        result += layer_tensors(config, layer)
    result.append(Tensor("model.norm.weight", (hidden,)))
    return result if tied(config) else [*result, Tensor("lm_head.weight", (vocabulary, hidden))]


def parameters(config: Mapping[str, Any]) -> int:
    """Return the number of parameters of the model."""
    return sum(tensor.size for tensor in tensors(config))


def targeted(config: Mapping[str, Any], layer: int, targets: str | Iterable[str]) -> list[Linear]:
    """Return the modules of one layer that an adapter with these targets changes.

    Args:
        config: the model.
        layer: which layer.
        targets: as the setting ``lora_targets``: ``auto``, ``attention``, ``all-linear`` or names such as ``q_proj``,
            comma-separated or a sequence.

    Raises:
        ShapeError: if it names the fused experts of a mixture; how much peft keeps for those is not known here.
    """
    names = targets.split(",") if isinstance(targets, str) else targets
    wanted = {name.strip() for name in names}
    if is_sparse(config, layer) and (expert := wanted & {"experts", "gate_proj", "up_proj", "down_proj"}):
        raise ShapeError(f"adapters on fused experts are not counted: expected attention modules, got {min(expert)}")
    modules = linears(config, layer)
    if "all-linear" in wanted and config["model_type"] in MIXTURES and config.get("mlp_only_layers"):
        raise ShapeError("all-linear of a mixture with dense layers is refused in training too: peft takes those for "
                         "its fused experts; expected attention")  # fmt: skip
    if "all-linear" in wanted or ("auto" in wanted and config["model_type"] not in MIXTURES):
        return modules
    if wanted & {"auto", "attention"}:
        wanted |= {"q_proj", "k_proj", "v_proj", "o_proj"}
    return [module for module in modules if module.name.rsplit(".", 1)[1] in wanted]


def adapter_tensors(config: Mapping[str, Any], targets: str | Iterable[str], rank: int) -> list[Tensor]:
    """Return the parameters of a LoRA adapter: A is (rank, inputs), B is (outputs, rank)."""
    targets = targets if isinstance(targets, str) else list(targets)
    return [
        tensor
        for layer in range(int(config["num_hidden_layers"]))
        for module in targeted(config, layer, targets)
        for tensor in (
            Tensor(f"{module.name}.lora_A.weight", (rank, module.inputs)),
            Tensor(f"{module.name}.lora_B.weight", (module.outputs, rank)),
        )
    ]


def _has_bias(config: Mapping[str, Any], name: str) -> bool:
    kind = name.rsplit(".", 1)[1]
    if ".mlp." in name:
        return bool(config.get("mlp_bias", False)) and config["model_type"] == "llama"
    if config["model_type"] == "qwen2":
        return kind != "o_proj"
    return bool(config.get("attention_bias", False)) and config["model_type"] != "mistral"
