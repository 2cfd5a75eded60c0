"""One name for any model: ``nano``, ``smollm2``, ``hf:<directory or hub id>``, ``vllm:<…>``, ``openai:<model>``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spade_envs.models.base import ChatModel, ModelError

if TYPE_CHECKING:
    from spade_envs.models.journal import ReplyJournal
    from spade_envs.models.usage import Prices


def check_spec(spec: str, *, others: Sequence[str] = ()) -> None:
    """Check that ``spec`` has the form of a model's name, without looking for the model.

    Args:
        spec: the name.
        others: what is told besides models, such as players that are none.

    Raises:
        ModelError: otherwise; the message says which forms there are.
    """
    kind, _, rest = spec.partition(":")
    if spec not in ("nano", "smollm2") and not (kind in ("hf", "vllm", "openai") and rest):
        told = "".join(f"{name}, " for name in others)
        meant = f"; did you mean hf:{spec}?" if "/" in spec and ":" not in spec else ""
        raise ModelError(
            f"unknown model {spec!r}; expected {told}nano, smollm2, hf:<directory or hub id>, "
            f"vllm:<directory or hub id>, or openai:<model> with a base URL{meant}"
        )


def load_model(
    spec: str,
    *,
    adapter: str | None = None,
    base_url: str | None = None,
    device: str | None = None,
    dtype: str | None = None,
    batch_size: int = 64,
    concurrency: int = 16,
    request_seconds: float = 300.0,
    total_seconds: float = 900.0,
    prices: Prices | None = None,
    journal: ReplyJournal | None = None,
) -> ChatModel:
    """Make the model that ``spec`` names.

    Args:
        spec: ``nano`` (the embedded model), ``smollm2`` (SmolLM2-135M-Instruct, from its wheel),
            ``hf:<directory or hub id>`` (run here by transformers),
            ``vllm:<directory or hub id>`` (run here by vLLM, on a GPU) or ``openai:<model>`` (an OpenAI-compatible
            endpoint; its key is read from OPENAI_API_KEY only).
        adapter: folder of a PEFT adapter to put on a model that transformers runs here.
        base_url: the endpoint, e.g. ``http://localhost:8000/v1``; else OPENAI_BASE_URL, else OpenAI's own.
        device: for transformers: "cpu", "cuda", …; by default the GPU if there is one.
        dtype: for transformers and vLLM: "float32", "bfloat16", ….
        batch_size: for transformers: most conversations in one batch.
        concurrency: for an endpoint: most requests at once.
        request_seconds: for an endpoint: wall-clock bound on one request.
        total_seconds: for an endpoint: bound on one completion with its retries.
        prices: for an endpoint: of tokens, to count the cost.
        journal: for an endpoint: where replies are kept until what they are for is stored.

    Raises:
        ModelError: if the model cannot be used; the message says what to do.
    """
    check_spec(spec)
    kind, _, rest = spec.partition(":")
    if adapter is not None and kind in ("openai", "vllm"):
        raise ModelError(f"an adapter goes on a model that transformers runs here (nano, smollm2, hf:…), got {spec!r}; "
                         f"serve them together (spade serve) or merge the adapter first")  # fmt: skip
    if kind == "openai":
        from spade_envs.models.openai import OpenAIModel

        return OpenAIModel(
            rest,
            base_url=base_url,
            concurrency=concurrency,
            request_seconds=request_seconds,
            total_seconds=total_seconds,
            prices=prices,
            journal=journal,
        )
    if base_url is not None:
        raise ModelError(f"a base URL goes with openai:<model> only, got {spec!r}; did you mean openai:{rest or spec}?")
    if spec == "nano":
        from spade_envs.models.transformers import NANO_FOLDER, TransformersModel

        return TransformersModel.load(
            NANO_FOLDER, name="nano", adapter=adapter, device=device, dtype=dtype, batch_size=batch_size
        )
    if spec == "smollm2":
        from spade_envs.models.smollm2 import smollm2_folder
        from spade_envs.models.transformers import TransformersModel

        return TransformersModel.load(
            smollm2_folder(), name="smollm2", adapter=adapter, device=device, dtype=dtype, batch_size=batch_size
        )
    if kind == "hf":
        from spade_envs.models.transformers import TransformersModel

        return TransformersModel.load(rest, adapter=adapter, device=device, dtype=dtype, batch_size=batch_size)
    from spade_envs.models.vllm import VLLMModel

    return VLLMModel.load(rest, dtype=dtype)
