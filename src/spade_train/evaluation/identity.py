"""What a model is, beyond its name: the part of the cache's key that changes when its weights do."""

from __future__ import annotations

import hashlib
from pathlib import Path

_WEIGHTS = (".safetensors", ".bin", ".gguf", ".json", ".model", ".jinja")


def model_identity(spec: str, adapter: str | None = None, base_url: str | None = None) -> str:
    """Return ``spec[+adapter]@hash``.

    The hash covers name, size and time of change of every file of weights and configuration in a local folder, and an
    endpoint's address; of a model on a hub its name is all there is.

    Args:
        spec: as ``--model`` has it.
        adapter: folder of an adapter.
        base_url: of an endpoint.
    """
    facts = [base_url or ""]
    for folder in (spec.partition(":")[2] if spec.startswith(("hf:", "vllm:")) else "", adapter or ""):
        if folder and Path(folder).is_dir():
            facts += _files(Path(folder))
    digest = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:12]
    return f"{spec}{f'+{adapter}' if adapter else ''}@{digest}"


def _files(folder: Path) -> list[str]:
    found = sorted(path for path in folder.iterdir() if path.suffix in _WEIGHTS and path.is_file())
    return [f"{path.name} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in found]
