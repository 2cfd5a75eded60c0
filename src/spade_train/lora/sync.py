"""How the policy's adapter reaches the engine that samples from it.

Two ways, both exact:

- *adapter*: the adapter alone, under a new name for every step. The engine holds the base weights and adds the
  adapter (``enable_lora``). Little is moved, and the prefix cache needs no reset: it is kept by adapter name.
- *merge*: the changed weights, folded (:mod:`spade_train.lora.merge`), into the engine's own copy. For adapters that
  engines cannot serve (experts), and for engines that were not started for adapters.
"""

from __future__ import annotations

import logging
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from spade_train.lora.export import save_adapter
from spade_train.lora.merge import Gather
from spade_train.lora.serving import ServingError, check_servable, served_rank

logger = logging.getLogger(__name__)

_KEPT = 2  # folders: engines may read one lazily, after it was unloaded


class SyncError(RuntimeError):
    """The engine cannot take the policy's weights; the message says what to start it with."""


class Adapter(NamedTuple):
    """One published state of the policy's adapter."""

    name: str  # what a request to a server says as its model
    number: int  # 1, 2, …: the ``lora_int_id`` of vLLM's ``LoRARequest``
    path: Path


class AdapterEngine(Protocol):
    """An engine that serves adapters: a vLLM server, or a vLLM engine in this process."""

    def load(self, adapter: Adapter) -> None:
        """Make requests able to name ``adapter``."""
        ...

    def unload(self, adapter: Adapter) -> None:
        """Forget an adapter that nobody asks for any more."""
        ...


class AdapterSync:
    """Publishes the adapter of a policy in training, a new name for every step.

    Args:
        model: the ``peft.PeftModel``.
        folder: where adapters are written; a server must see it under the same path.
        engine: what serves them; None on ranks that talk to no engine.
        write: whether this rank writes.
        barrier: waits for all ranks.
        run: part of the names, equal on all ranks and new for every run: a server may still hold an older run's.
        gather: makes partitioned parameters whole, under DeepSpeed ZeRO-3.

    Raises:
        ServingError: if vLLM could not serve the adapter.
    """

    def __init__(
        self,
        model: Any,
        folder: str | Path,
        engine: AdapterEngine | None,
        *,
        write: bool = True,
        barrier: Callable[[], None] = lambda: None,
        run: str = "",
        gather: Gather | None = None,
    ) -> None:
        check_servable(lora_settings(model))
        self._model, self._folder, self._engine = model, Path(folder).resolve(), engine
        self._write, self._barrier, self._gather = write, barrier, gather
        self._run = run or uuid.uuid4().hex[:8]
        self._current: Adapter | None = None
        self._old: list[Path] = []
        self._published = 0

    def sync(self, step: int) -> Adapter:
        """Publish the adapter as it is now and return how requests name it; collective.

        The new one is loaded before the old one is dropped, so requests always find theirs.
        """
        self._published += 1
        name = f"policy-{self._run}-{step}-{self._published}"
        new = Adapter(name, self._published, self._folder / name)
        save_adapter(self._model, new.path, write=self._write, gather=self._gather)
        self._barrier()
        if self._engine is not None:
            self._engine.load(new)
            if self._current is not None:
                self._engine.unload(self._current)
        if self._write and self._current is not None:
            self._old.append(self._current.path)
            while len(self._old) >= _KEPT:
                shutil.rmtree(self._old.pop(0), ignore_errors=True)
        self._current = new
        return new


class VllmServer:
    """The adapters of a ``vllm serve --enable-lora`` process, over HTTP.

    The server needs ``VLLM_ALLOW_RUNTIME_LORA_UPDATING=1`` in its environment.

    Args:
        url: of the server, without ``/v1``.
        timeout: seconds for one request.
    """

    def __init__(self, url: str, *, timeout: float = 600.0, client: Any = None) -> None:
        import httpx

        self._client = client or httpx.Client(base_url=url.rstrip("/"), timeout=timeout)
        self._url = url

    def load(self, adapter: Adapter) -> None:
        """Load an adapter from its folder; see :class:`AdapterEngine`.

        Raises:
            SyncError: if the server refuses.
        """
        body = {"lora_name": adapter.name, "lora_path": str(adapter.path)}
        answer = self._ask("POST", "/v1/load_lora_adapter", json=body)
        if answer.status_code == 404 and "adapter" not in answer.text.lower():
            raise SyncError(
                f"the vLLM server at {self._url} has no /v1/load_lora_adapter: start it with --enable-lora and "
                f"VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 in its environment, or set lora_sync: merge"
            )
        if answer.status_code != 200:
            raise SyncError(
                f"the vLLM server at {self._url} refuses adapter {adapter.path}: {answer.status_code} "
                f"{answer.text[:300]}. It must see this path, and its --max-lora-rank must be large enough"
            )

    def unload(self, adapter: Adapter) -> None:
        """Forget an adapter; one that the server has dropped by itself is no error."""
        self._ask("POST", "/v1/unload_lora_adapter", json={"lora_name": adapter.name})

    def serves_adapters(self, r: int) -> bool:
        """Whether the server was started for adapters; False where it does not say (no ``/server_info``).

        Raises:
            SyncError: if it was, but for smaller ranks.
        """
        answer = self._ask("GET", "/server_info", params={"config_format": "json"})
        if answer.status_code != 200:
            return False
        settings = answer.json().get("vllm_config") or {}
        lora = settings.get("lora_config")
        if not isinstance(lora, dict):
            return False
        if (most := int(lora.get("max_lora_rank", r))) < r:
            raise SyncError(
                f"the vLLM server at {self._url} takes adapters up to rank {most}, the policy's has {r}: "
                f"start it with --max-lora-rank {served_rank(r)}"
            )
        replicas = int((settings.get("parallel_config") or {}).get("data_parallel_size", 1))
        if replicas > 1:  # a loaded adapter reaches only the replica that answered
            logger.warning("the vLLM server has %d replicas, of which one would get the adapter: merging", replicas)
            return False
        return True

    def _ask(self, method: str, path: str, **content: Any) -> Any:
        import httpx

        try:
            return self._client.request(method, path, **content)
        except httpx.HTTPError as error:
            raise SyncError(
                f"the vLLM server at {self._url} does not answer {path}: {error!r}. Is it running?"
            ) from error


def lora_settings(model: Any) -> dict[str, Any]:
    """Return the configuration of the active adapter as a mapping.

    Raises:
        ServingError: if more than one adapter is active.
    """
    if len(active := list(model.active_adapters)) != 1:
        raise ServingError(f"expected one active adapter, got {active}")
    return dict(model.peft_config[active[0]].to_dict())


def choose_sync(wanted: str, settings: dict[str, Any], *, engine_serves: bool, why_not: str = "") -> str:
    """Return ``adapter`` or ``merge``.

    Args:
        wanted: ``auto``, ``adapter`` or ``merge``.
        settings: of the adapter, as :func:`lora_settings` returns.
        engine_serves: whether the engine was started for adapters.
        why_not: what to say if it was not.

    Raises:
        SyncError: if ``adapter`` is wanted and cannot be.
    """
    if wanted == "merge":
        return "merge"
    reason = "" if engine_serves else why_not or "the engine was not started for adapters"
    if not reason:
        try:
            check_servable(settings)
        except ServingError as error:
            reason = str(error)
    if not reason:
        return "adapter"
    if wanted == "adapter":
        raise SyncError(f"lora_sync: adapter is not possible: {reason}. Use auto or merge")
    logger.info("changed weights are sent merged: %s", reason)
    return "merge"
