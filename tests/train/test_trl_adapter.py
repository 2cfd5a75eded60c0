"""The contract with TRL's private surface, and what is built on it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from spade_train.rows import Row
from spade_train.trl_adapter import TrlContractError, TrlSampler, check_trl, columns


def test_installed_trl_keeps_the_contract() -> None:
    check_trl()


class _Gone:
    pass


class _Changed:
    def _generate_single_turn(self, prompts: Any) -> None: ...


class _NeedsMore:
    def _generate_single_turn(
        self, prompt_ids: Any, images: Any, multimodal_fields: Any, num_generations: int, tools: Any
    ) -> None: ...


@pytest.mark.parametrize("trainer_class", [_Gone, _Changed, _NeedsMore])
def test_other_trl_is_refused_with_what_to_install(trainer_class: type) -> None:
    with pytest.raises(TrlContractError, match=r"pip install 'trl==1\.16"):
        check_trl(trainer_class)


class _Trainer:
    """As much of a trainer as a sampler touches."""

    use_vllm = False
    is_deepspeed_enabled = is_fsdp_enabled = False

    def __init__(self, others: int = 0, processes: int = 1) -> None:
        self.calls: list[tuple[int, int, float, bool]] = []
        self.generation_config = SimpleNamespace(max_new_tokens=512, temperature=1.0, do_sample=True)
        self.processing_class = SimpleNamespace(eos_token_id=0)
        self.accelerator = SimpleNamespace(
            num_processes=processes,
            device=torch.device("cpu"),
            gather=lambda mine: torch.cat([mine, torch.full_like(mine, others)]),
        )

    def _generate_single_turn(self, prompt_ids: Any, images: Any, fields: Any, num_generations: int) -> Any:
        config = self.generation_config
        self.calls.append((len(prompt_ids), config.max_new_tokens, config.temperature, config.do_sample))
        return [[ids[0]] * (config.max_new_tokens + 1) for ids in prompt_ids], None


def test_sampler_keeps_the_order_and_restores_the_settings() -> None:
    trainer = _Trainer()
    samples = TrlSampler(trainer, rows=2).sample([[5, 5, 5], [1], [3, 3]], 4, 0.0)
    assert [one.ids[0] for one in samples] == [5, 1, 3]
    assert trainer.calls == [(2, 4, 1.0, False), (1, 4, 1.0, False)]
    assert (trainer.generation_config.max_new_tokens, trainer.generation_config.do_sample) == (512, True)


def test_collective_sampler_calls_as_often_and_as_wide_as_the_widest_rank() -> None:
    trainer = _Trainer(others=3, processes=2)
    sampler = TrlSampler(trainer, collective=True)
    assert sampler.busy(0)
    assert sampler.sample([], 3) == []
    assert [one.ids for one in sampler.sample([[7]], 2)] == [[7, 7]]
    assert [call[:2] for call in trainer.calls] == [(3, 3), (3, 3)]
    idle = TrlSampler(_Trainer(others=0, processes=2), collective=True)
    assert not idle.busy(0)
    assert idle.sample([], 3) == []


def test_columns_refuse_rows_without_a_mask() -> None:
    row = Row("agent", "e", [1], [2, 3], [1])
    with pytest.raises(ValueError, match="mask"):
        columns([row], {}, with_logprobs=False)
    row = Row("agent", "e", [1], [2, 3], [1, 0])
    with pytest.raises(ValueError, match="log-probabilities"):
        columns([row], {}, with_logprobs=True)
    made = columns([row], {"a": 1.0}, with_logprobs=False)
    assert made["env_mask"] == [[1, 0]]
    assert made["logprobs"] is None
