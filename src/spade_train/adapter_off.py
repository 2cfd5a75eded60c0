"""Sampling from the policy as it was before training: the adapter switched off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spade_train.cycle import Sample, Sampler
from spade_train.lora.trl_sync import adapter_off


class AdapterOffSampler:
    """Samples like another sampler, while the adapter of the trainer's policy is off.

    With vLLM the engine must hold the adapter apart (``lora_sync: adapter``): merged weights have no base any more.

    Args:
        trainer: the trainer whose policy is a :class:`peft.PeftModel`.
        sampler: samples from that policy.
    """

    def __init__(self, trainer: Any, sampler: Sampler) -> None:
        self._trainer, self._sampler = trainer, sampler

    def sample(self, prompts: Sequence[list[int]], max_tokens: int, temperature: float | None = None) -> list[Sample]:
        """Return one sample for each prompt; see :class:`spade_train.cycle.Sampler`."""
        with adapter_off(self._trainer):
            return self._sampler.sample(prompts, max_tokens, temperature)

    def busy(self, prompts: int) -> bool:
        """Whether there is work; see :class:`spade_train.cycle.Sampler`."""
        return self._sampler.busy(prompts)
