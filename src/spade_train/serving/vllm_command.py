"""``vllm serve``, where a GPU and vLLM are."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path

from spade_envs.models.base import ModelError


def vllm_can_serve() -> bool:
    """Whether there is a GPU, and vLLM beside it."""
    if find_spec("vllm") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


def vllm_command(
    source: str, name: str, host: str, port: int, *, adapter: str | None = None, dtype: str | None = None
) -> list[str]:
    """Return the command line that serves ``source`` with tool calls in Hermes' form (Qwen's).

    With an adapter ``name`` is the adapted model, and the base is served as ``name-base``.

    Raises:
        ModelError: if the adapter's folder is none.
    """
    command = [sys.executable, "-m", "vllm.entrypoints.cli.main", "serve", source, "--host", host, "--port", str(port)]
    command += ["--enable-auto-tool-choice", "--tool-call-parser", "hermes"]
    command += ["--dtype", dtype] if dtype else []
    if adapter is None:
        return [*command, "--served-model-name", name]
    path = Path(adapter) / "adapter_config.json"
    if not path.is_file():
        raise ModelError(f"directory {adapter} holds no adapter: it has no adapter_config.json")
    rank = int(json.loads(path.read_text(encoding="utf-8")).get("r", 16))
    command += ["--served-model-name", f"{name}-base", "--enable-lora", "--lora-modules", f"{name}={adapter}"]
    return [*command, "--max-lora-rank", str(max(8, 1 << (rank - 1).bit_length()))]
