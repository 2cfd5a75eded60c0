"""The only file that touches TRL's private surface, and what TRL expects of a rollout.

One private call is needed: ``GRPOTrainer._generate_single_turn`` samples from whichever backend the trainer holds
(transformers, vLLM in process, a vLLM server). Its signature has changed before, so :func:`check_trl` compares it
with what this file was written against and says what to do.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

import torch
import trl
from trl import GRPOTrainer

from spade_train.cycle import Sample
from spade_train.engine import Engine, LockStepEngine, sample_all
from spade_train.rows import Row
from spade_train.trl_engines import engine_for, say_why, sync_vllm, unsupported

T = TypeVar("T")

_TESTED = "1.16"
_PARAMETERS = ("self", "prompt_ids", "images", "multimodal_fields", "num_generations")


class TrlContractError(RuntimeError):
    """The installed TRL is not one this package can drive."""


def check_trl(trainer_class: type = GRPOTrainer) -> None:
    """Check the one private method that is used.

    Raises:
        TrlContractError: if it is missing or takes other parameters than TRL 1.16's.
    """
    method = getattr(trainer_class, "_generate_single_turn", None)
    found = tuple(inspect.signature(method).parameters) if method is not None else ()
    extra = [name for name in found[len(_PARAMETERS) :] if _required(method, name)]
    if found[: len(_PARAMETERS)] != _PARAMETERS or extra:
        raise TrlContractError(
            f"GRPOTrainer._generate_single_turn of trl {trl.__version__} takes {found or 'nothing: it is gone'}; "
            f"expected {_PARAMETERS}. Install a tested version: pip install 'trl=={_TESTED}.*'"
        )


def _required(method: Any, name: str) -> bool:
    return inspect.signature(method).parameters[name].default is inspect.Parameter.empty


class TrlSampler:
    """Samples from the policy of a :class:`trl.GRPOTrainer`, through its own generation backend. Make one a cycle.

    Args:
        trainer: the trainer inside whose rollout this is used.
        rows: most sequences sampled together, where the backend is not collective.
        collective: whether every rank must call equally often and equally wide; by default as the backend needs.
        engine: ``auto`` for an engine in which no turn waits for another one, wherever the trainer allows it;
            ``lock_step`` for TRL's own generation.
        lag: see :class:`spade_train.engine.Engine`; -1 for 1 where a GPU samples, 0 on a CPU.

    ``reason`` says why turns are sampled in lock step; it is empty where they are not.
    """

    def __init__(
        self, trainer: Any, *, rows: int = 256, collective: bool | None = None, engine: str = "lock_step", lag: int = 0
    ) -> None:
        self._trainer, self._rows = trainer, rows
        self._lag = lag if lag >= 0 else int(trainer.accelerator.device.type != "cpu")
        self.collective = is_collective(trainer) if collective is None else collective
        self.reason = "engine is lock_step"
        self._opened = 0
        if engine == "auto":
            self.reason = unsupported(trainer, collective=self.collective)
            if self.reason:
                say_why(self.reason)
            elif trainer.use_vllm:
                sync_vllm(trainer)  # here, where all ranks come by once

    @contextlib.contextmanager
    def engine(self) -> Iterator[Engine]:
        """Give the engine for conversations; see :class:`spade_train.engine.EngineSource`."""
        if self.reason:
            yield LockStepEngine(self)
            return
        trainer = self._trainer
        seed = (int(trainer.args.seed), trainer.accelerator.process_index, int(trainer.state.global_step), self._opened)
        self._opened += 1
        with engine_for(trainer, slots=self._rows, seed=seed, lag=self._lag) as engine:
            yield engine

    def sample(self, prompts: Sequence[list[int]], max_tokens: int, temperature: float | None = None) -> list[Sample]:
        """Return one sample for each prompt; see :class:`spade_train.cycle.Sampler`."""
        if not self.reason:
            with self.engine() as engine:
                return sample_all(engine, prompts, max_tokens, temperature)
        if self.collective:
            width = self._most(len(prompts))
            if width == 0:
                return []
            longest = self._most(max_tokens)
            dummies = [[int(self._trainer.processing_class.eos_token_id)]] * (width - len(prompts))
            return [
                Sample(ids[:max_tokens], None if logprobs is None else logprobs[:max_tokens])
                for ids, logprobs in self._generate([*prompts, *dummies], longest, temperature)[: len(prompts)]
            ]
        order = sorted(range(len(prompts)), key=lambda index: len(prompts[index]))  # equal lengths, little padding
        samples: dict[int, Sample] = {}
        for start in range(0, len(order), self._rows):
            chunk = order[start : start + self._rows]
            samples.update(zip(chunk, self._generate([prompts[i] for i in chunk], max_tokens, temperature)))
        return [samples[index] for index in range(len(prompts))]

    def busy(self, prompts: int) -> bool:
        """Whether there is work; see :class:`spade_train.cycle.Sampler`."""
        return (self._most(prompts) if self.collective and self.reason else prompts) > 0

    def _most(self, number: int) -> int:
        accelerator = self._trainer.accelerator
        return int(accelerator.gather(torch.tensor([number], device=accelerator.device)).max())

    def _generate(self, prompts: list[list[int]], max_tokens: int, temperature: float | None) -> list[Sample]:
        with self._settings(max_tokens, temperature):
            ids, logprobs = self._trainer._generate_single_turn(prompts, None, {}, num_generations=1)
        return [Sample(list(ids[i]), None if logprobs is None else list(logprobs[i])) for i in range(len(prompts))]

    @contextlib.contextmanager
    def _settings(self, max_tokens: int, temperature: float | None) -> Iterator[None]:
        """Set length and temperature of the backend for one call."""
        values: dict[str, Any]
        if self._trainer.use_vllm:
            holder, values = self._trainer.vllm_generation, {"max_completion_length": max_tokens}
            if temperature is not None:
                values["temperature"] = temperature
        else:
            holder, values = self._trainer.generation_config, {"max_new_tokens": max_tokens}
            if temperature is not None:
                values |= {"temperature": temperature or 1.0, "do_sample": temperature > 0}
        before = {name: getattr(holder, name) for name in values}
        try:
            for name, value in values.items():
                setattr(holder, name, value)
            yield
        finally:
            for name, value in before.items():
                setattr(holder, name, value)


def is_collective(trainer: Any) -> bool:
    """Whether generating is a collective operation of all ranks."""
    if trainer.accelerator.num_processes == 1:
        return False
    vllm = trainer.use_vllm and (trainer.vllm_mode == "server" or trainer.vllm_tensor_parallel_size > 1)
    return bool(vllm or trainer.is_deepspeed_enabled or trainer.is_fsdp_enabled)


def columns(rows: Sequence[Row], metrics: Mapping[str, float], *, with_logprobs: bool) -> dict[str, Any]:
    """Return rows as TRL expects them from a rollout function; the other keys reach the reward function."""
    for row in rows:
        if not len(row.mask) == len(row.completion_ids) > 0:
            raise ValueError(f"a row has {len(row.completion_ids)} ids and {len(row.mask)} mask entries")
        if with_logprobs and len(row.logprobs) != len(row.completion_ids):
            raise ValueError(f"a row has {len(row.completion_ids)} ids and {len(row.logprobs)} log-probabilities")
    return {
        "prompt_ids": [row.prompt_ids for row in rows],
        "completion_ids": [row.completion_ids for row in rows],
        "logprobs": [row.logprobs for row in rows] if with_logprobs else None,
        "env_mask": [row.mask for row in rows],
        "spade_row": list(rows),
        "spade_metrics": [metrics] * len(rows),
    }


def gather(trainer_or_state: Any, value: T) -> list[T]:
    """Return the values of all ranks, in rank order, on every rank."""
    from accelerate.utils import gather_object

    if trainer_or_state.num_processes == 1:
        return [value]
    return cast("list[T]", gather_object([value]))
