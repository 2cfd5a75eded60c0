"""The adapter's synchronisation inside a ``trl.GRPOTrainer`` that samples with vLLM.

TRL 1.16 merges the adapter into the policy, sends every weight, and unmerges. Here it sends the adapter alone, or
the changed weights from copies. What of ``VLLMGeneration`` is used is checked first.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import logging
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from spade_train.lora.merge import Gather, merged_weights
from spade_train.lora.serving import engine_arguments
from spade_train.lora.sync import Adapter, AdapterSync, SyncError, VllmServer, choose_sync, lora_settings
from spade_train.trl_adapter import TrlContractError

logger = logging.getLogger(__name__)

T = TypeVar("T")

_USED = ("sync_weights", "_iter_named_params", "generate", "_init_vllm")


def check_vllm_generation(generation_class: type) -> None:
    """Check what is used of TRL's ``VLLMGeneration``.

    Raises:
        TrlContractError: if a method is missing, or the engine is not made by the name ``LLM`` of its module.
    """
    import trl

    missing = [name for name in _USED if not callable(getattr(generation_class, name, None))]
    if not missing and "LLM(" not in inspect.getsource(generation_class._init_vllm):  # type: ignore[attr-defined]
        missing = ["LLM(...) in _init_vllm"]
    if missing:
        raise TrlContractError(
            f"VLLMGeneration of trl {trl.__version__} has no {', '.join(missing)}, which the adapter's "
            f"synchronisation uses. Install a tested version: pip install 'trl==1.16.*'"
        )


@contextlib.contextmanager
def adapter_engine(*, wanted: str, r: int, colocated: bool, sleeps: bool) -> Iterator[None]:
    """Let a vLLM engine that TRL starts in this process meanwhile serve adapters of rank ``r``.

    Nothing changes if ``wanted`` is ``merge``, there is no such engine, or it sleeps: sleeping engines drop their
    weights, and all have to be sent again anyway.
    """
    if wanted == "merge" or not colocated or sleeps:
        yield
        return
    from trl.generation import vllm_generation

    check_vllm_generation(vllm_generation.VLLMGeneration)
    original = vllm_generation.LLM
    vllm_generation.LLM = functools.partial(original, **engine_arguments(r))
    try:
        yield
    finally:
        vllm_generation.LLM = original


def install_sync(trainer: Any, *, wanted: str, folder: str | Path) -> str:
    """Replace TRL's weight synchronisation of a trainer by an exact one.

    Args:
        trainer: a ``trl.GRPOTrainer`` whose model is a ``peft.PeftModel``.
        wanted: ``auto``, ``adapter`` or ``merge``.
        folder: where adapters for the engine are written; a server must see it under the same path.

    Returns:
        ``adapter``, ``merge``, or ``none`` without vLLM.

    Raises:
        SyncError: if ``adapter`` is wanted and cannot be, or the weights are sharded by FSDP 1.
    """
    if not trainer.use_vllm:
        return "none"
    generation, accelerator = trainer.vllm_generation, trainer.accelerator
    check_vllm_generation(type(generation))
    gather = parameter_gather(accelerator)
    sleeps = generation.mode == "colocate" and bool(generation.enable_sleep_mode)
    server = VllmServer(_url(generation)) if generation.mode == "server" and accelerator.is_main_process else None

    def choose() -> tuple[str, str]:
        settings = lora_settings(generation.model)
        serves, why = _serves(generation)
        if server is not None and wanted != "merge":
            serves, why = server.serves_adapters(int(settings["r"])), "the server was started without --enable-lora"
        return choose_sync(wanted, settings, engine_serves=serves, why_not=why), uuid.uuid4().hex[:8]

    way, run = _from_main(accelerator, choose)
    if way == "merge":
        generation._iter_named_params = lambda: merged_weights(generation.model, everything=sleeps, gather=gather)
        return way
    colocated = InProcess(generation.llm) if generation.mode == "colocate" else None
    publisher = AdapterSync(
        generation.model,
        folder,
        server or colocated,
        write=accelerator.is_main_process,
        barrier=accelerator.wait_for_everyone,
        run=run,
        gather=gather,
    )

    base = _from_main(accelerator, lambda: generation.vllm_client.model) if generation.mode == "server" else None

    def ask_for(name: str | None) -> None:
        generation.served_model = name
        if server is not None:
            generation.vllm_client.model = name  # TRL's own client

    def sync_weights() -> None:
        ask_for(publisher.sync(int(trainer.state.global_step)).name)

    @contextlib.contextmanager
    def switch() -> Iterator[None]:
        asked = generation.served_model
        ask_for(base)
        try:
            with colocated.off() if colocated else contextlib.nullcontext():
                yield
        finally:
            ask_for(asked)

    generation.sync_weights, generation.adapter_switch = sync_weights, switch
    return way


@contextlib.contextmanager
def adapter_off(trainer: Any) -> Iterator[None]:
    """Let the trainer sample meanwhile from its policy as it was before training.

    In this process the adapter is switched off; vLLM is asked for the base model, which it holds beside the adapter.

    Raises:
        SyncError: if vLLM holds merged weights, in which the base is not there any more.
    """
    if not trainer.use_vllm:
        with trainer.accelerator.unwrap_model(trainer.model).disable_adapter():
            yield
        return
    generation = trainer.vllm_generation
    if (switch := getattr(generation, "adapter_switch", None)) is None:
        raise SyncError(
            "sampling from the base policy (a frozen designer) needs an engine that holds the adapter apart: set "
            "lora_sync: adapter and see docs/training.md for what the engine must be started with"
        )
    if trainer.state.global_step != trainer._last_loaded_step:  # else it would be switched on again in between
        generation.sync_weights()
        trainer._last_loaded_step = trainer.state.global_step
    with switch():
        yield


class InProcess:
    """The adapters of a ``vllm.LLM`` in this process: whatever it is asked next is sampled under the newest one."""

    def __init__(self, llm: Any) -> None:
        self._llm, self._generate, self._add_request = llm, llm.generate, llm.llm_engine.add_request
        self._request: Any = None

    def load(self, adapter: Adapter) -> None:
        """Load an adapter and generate with it from now on.

        Raises:
            SyncError: if the engine refuses.
        """
        from vllm.lora.request import LoRARequest

        request = LoRARequest(adapter.name, adapter.number, str(adapter.path))
        if not self._llm.llm_engine.add_lora(request):
            raise SyncError(f"vLLM did not load the adapter {adapter.path}; its log says why")
        self._ask_with(request)

    def unload(self, adapter: Adapter) -> None:
        """Free the adapter's place."""
        self._llm.llm_engine.remove_lora(adapter.number)

    @contextlib.contextmanager
    def off(self) -> Iterator[None]:
        """Generate with the base model alone meanwhile."""
        asked = self._request
        self._ask_with(None)
        try:
            yield
        finally:
            self._ask_with(asked)

    def _ask_with(self, request: Any) -> None:
        self._request = request
        self._llm.generate = functools.partial(self._generate, lora_request=request)
        self._llm.llm_engine.add_request = functools.partial(self._add_request, lora_request=request)


def parameter_gather(accelerator: Any) -> Gather | None:
    """Return what makes partitioned parameters whole, or None where they are whole (or gather themselves, as FSDP2's).

    Raises:
        SyncError: if the weights are sharded by FSDP 1, whose parameters cannot be had one by one.
    """
    from trl.distributed import DistributedBackend

    backend = DistributedBackend(accelerator)
    if backend.fsdp_version == 1:
        raise SyncError(
            "adapters are not trained under FSDP 1 here: set fsdp_version: 2 in the accelerate configuration"
        )
    return backend.gather_params if backend.is_zero3 else None


def _serves(generation: Any) -> tuple[bool, str]:
    """Return whether the engine in this process serves adapters, and what to say if not."""
    if generation.mode != "colocate":
        return False, ""
    if generation.enable_sleep_mode:
        return False, "the engine sleeps between steps and drops its weights"
    settings = getattr(generation.llm.llm_engine, "vllm_config", None)
    return getattr(settings, "lora_config", None) is not None, "the engine was started without enable_lora"


def _url(generation: Any) -> str:
    return str(generation.server_base_url or f"http://{generation.server_host}:{generation.server_port}")


def _from_main(accelerator: Any, decide: Callable[[], T]) -> T:
    """Return what the first rank decides, on every rank; an error is raised on every rank."""
    from accelerate.utils import broadcast_object_list

    answer: list[Any] = [None]
    if accelerator.is_main_process:
        try:
            answer = [decide()]
        except (SyncError, ValueError, OSError) as error:
            answer = [error]
    if accelerator.num_processes > 1:
        broadcast_object_list(answer, from_process=0)
    if isinstance(answer[0], Exception):
        raise answer[0]
    return answer[0]  # type: ignore[no-any-return]
