"""Which engine samples for a ``GRPOTrainer``, and the state of the trainer that each one needs.

Like :mod:`spade_train.trl_adapter` this touches private parts of TRL 1.16, all of them checked before use: what
:func:`unsupported` finds missing costs speed, not the run, since every backend can be driven in lock step.
"""

from __future__ import annotations

import contextlib
import logging
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from trl.models.utils import unwrap_model_for_generation

from spade_train.engine import Engine
from spade_train.engines.draw import Draw
from spade_train.engines.kv import UnsupportedModelError
from spade_train.engines.slots import SlotEngine, check_model
from spade_train.engines.vllm_colocate import ColocatedEngine
from spade_train.engines.vllm_server import ServerEngine

logger = logging.getLogger(__name__)

_CHECKED: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()  # model: why it has no slots, or ""
_SAID: set[str] = set()
_SAMPLING = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")


def unsupported(trainer: Any, *, collective: bool) -> str:
    """Return why turns must be sampled in lock step, or nothing if they need not.

    Args:
        trainer: a ``GRPOTrainer``.
        collective: whether its own generation is a collective operation.
    """
    if trainer.use_vllm:
        return _unsupported_vllm(trainer)
    if collective:
        return "the policy is spread over the ranks, which must generate together"
    if getattr(trainer, "use_transformers_continuous_batching", False):
        return "use_transformers_continuous_batching is on"
    if trainer.model not in _CHECKED:
        _CHECKED[trainer.model] = _unsupported_model(trainer)
    return _CHECKED[trainer.model]


def say_why(reason: str) -> None:
    """Log, once, why turns are sampled in lock step."""
    if reason not in _SAID:
        _SAID.add(reason)
        logger.warning("turns are sampled in lock step, all waiting for the longest: %s", reason)


def _unsupported_model(trainer: Any) -> str:
    try:
        draw_of(trainer)
        with generating(trainer) as model:
            check_model(model)
    except (UnsupportedModelError, ValueError) as error:
        return str(error)
    except (RuntimeError, TypeError, KeyError, IndexError, AttributeError) as error:  # from inside the model
        return f"its forward pass over slots fails: {type(error).__name__}: {error}"
    return ""


def _unsupported_vllm(trainer: Any) -> str:
    generation: Any = getattr(trainer, "vllm_generation", None)
    needed: tuple[str, ...] = ("sync_weights", "generation_kwargs", "structured_outputs_regex", "enable_sleep_mode")
    needed += _SAMPLING
    if missing := [name for name in needed if not hasattr(generation, name)]:
        return f"this TRL's VLLMGeneration has no {', '.join(missing)}"
    if generation.structured_outputs_regex is not None:
        return "vllm_structured_outputs_regex is set"
    if trainer.vllm_mode == "server":
        return ""
    if generation.tensor_parallel_size > 1:
        return "vllm_tensor_parallel_size is above 1, the ranks of a group must generate together"
    engine = getattr(getattr(generation, "llm", None), "llm_engine", None)
    needed = ("add_request", "step", "has_unfinished_requests", "abort_request")
    if missing := [name for name in needed if not hasattr(engine, name)]:
        return f"this vLLM's LLM.llm_engine has no {', '.join(missing)}"
    return ""


def draw_of(trainer: Any) -> Draw:
    """Return the sampling settings of a trainer that generates by ``transformers``.

    Raises:
        ValueError: if there are settings that cannot be had over slots.
    """
    model = trainer.accelerator.unwrap_model(trainer.model)
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    return Draw.from_generation_config(trainer.generation_config, getattr(base, "generation_config", None))


@contextlib.contextmanager
def generating(trainer: Any) -> Iterator[Any]:
    """Give the policy as TRL's own generation has it: unwrapped, without gradient checkpointing."""
    with (
        unwrap_model_for_generation(
            trainer.model_wrapped,
            trainer.accelerator,
            gradient_checkpointing_kwargs=trainer.args.gradient_checkpointing_kwargs,
        ) as model,
        torch.no_grad(),
    ):
        yield model


@contextlib.contextmanager
def engine_for(trainer: Any, *, slots: int, seed: Sequence[int], lag: int) -> Iterator[Engine]:
    """Give the engine for a trainer that :func:`unsupported` has nothing against."""
    if not trainer.use_vllm:
        with generating(trainer) as model:
            ends = trainer.generation_config.eos_token_id
            ends = ends if isinstance(ends, list | tuple) else [ends]
            yield SlotEngine(model, draw_of(trainer), ends, slots=slots, seed=seed, lag=lag)
    elif trainer.vllm_mode == "server":
        generation = trainer.vllm_generation
        name = getattr(generation, "served_model", None)  # the adapter of this step, where it goes alone
        server = ServerEngine(server_url(generation), _vllm_settings(generation), model=name)
        with contextlib.closing(server):
            yield server
    else:
        with _awake(trainer.vllm_generation) as llm:
            colocated = ColocatedEngine(llm.llm_engine, _parameters(trainer.vllm_generation), lag=lag)
            with contextlib.closing(colocated):
                yield colocated


def sync_vllm(trainer: Any) -> None:
    """Give vLLM the weights of this step, once; collective where the policy is spread over ranks."""
    if trainer.state.global_step != trainer._last_loaded_step:
        trainer.vllm_generation.sync_weights()
        trainer._last_loaded_step = trainer.state.global_step


def server_url(generation: Any) -> str:
    """Return the address of the server, which only rank 0 of TRL has a client for."""
    return str(generation.server_base_url or f"http://{generation.server_host}:{generation.server_port}")


def _vllm_settings(generation: Any) -> dict[str, Any]:
    settings = {name: getattr(generation, name) for name in _SAMPLING}
    settings["min_p"] = settings["min_p"] or 0.0
    return settings | dict(generation.generation_kwargs)


def _parameters(generation: Any) -> Callable[[int, float | None], Any]:
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    settings = _vllm_settings(generation)

    def make(max_tokens: int, temperature: float | None) -> Any:
        values = settings | {"n": 1, "logprobs": 0, "max_tokens": max_tokens}
        if temperature is not None:
            values["temperature"] = temperature
        return SamplingParams(**values, output_kind=RequestOutputKind.FINAL_ONLY)

    return make


@contextlib.contextmanager
def _awake(generation: Any) -> Iterator[Any]:
    """Wake a sleeping vLLM for the time of a rollout, as TRL does for a call."""
    if not generation.enable_sleep_mode:
        yield generation.llm
        return
    if generation._llm_weights_sleeping:
        generation.sync_weights()
    generation.llm.wake_up(tags=["kv_cache"])
    try:
        yield generation.llm
    finally:
        generation.llm.sleep(level=2)
        generation._llm_weights_sleeping = True
