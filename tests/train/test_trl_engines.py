"""Which engine a trainer gets, what is asked of TRL and vLLM for it, and why it may be lock step."""

from __future__ import annotations

import logging
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from tiny import tiny_model
from tinyrun import tiny_training
from transformers import GenerationConfig, MambaConfig, MambaForCausalLM
from trl.generation.vllm_generation import VLLMGeneration
from vllmdoubles import FINAL_ONLY, LLM, LLMEngine, SamplingParams, completion, vllm_serve

from spade_train import trl_engines
from spade_train.engine import LockStepEngine, sample_all
from spade_train.engines.slots import SlotEngine
from spade_train.engines.vllm_colocate import ColocatedEngine
from spade_train.engines.vllm_server import ServerEngine
from spade_train.trl_adapter import TrlSampler
from spade_train.trl_engines import unsupported


@pytest.fixture(scope="module")
def model(tokenizer: Any) -> Any:
    return tiny_model(tokenizer).eval()


@pytest.fixture(autouse=True)
def _vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    """The names that are imported from vLLM."""
    package, parameters = ModuleType("vllm"), ModuleType("vllm.sampling_params")
    package.SamplingParams = SamplingParams  # type: ignore[attr-defined]
    parameters.RequestOutputKind = SimpleNamespace(FINAL_ONLY=FINAL_ONLY)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "vllm", package)
    monkeypatch.setitem(sys.modules, "vllm.sampling_params", parameters)


class _Generation:
    """A :class:`VLLMGeneration` without its engine: only the settings that TRL's own constructor sets."""

    def __new__(cls, llm: Any = None, **changes: Any) -> Any:
        made = VLLMGeneration.__new__(VLLMGeneration)
        values = {
            "mode": "colocate", "structured_outputs_regex": None, "server_base_url": None, "server_host": "0.0.0.0",
            "server_port": 8000, "tensor_parallel_size": 1, "enable_sleep_mode": False, "repetition_penalty": 1.0,
            "temperature": 0.7, "top_p": 0.95, "top_k": 0, "min_p": None, "generation_kwargs": {"top_k": 11},
            "llm": llm,
        }  # fmt: skip
        for name, value in (values | changes).items():
            setattr(made, name, value)
        made.synced = 0
        made.sync_weights = lambda: setattr(made, "synced", made.synced + 1)
        return made


def _trainer(generation: Any = None, **changes: Any) -> Any:
    values: dict[str, Any] = {
        "use_vllm": generation is not None,
        "vllm_mode": getattr(generation, "mode", "colocate"),
        "vllm_tensor_parallel_size": getattr(generation, "tensor_parallel_size", 1),
        "vllm_generation": generation,
        "state": SimpleNamespace(global_step=4),
        "_last_loaded_step": -1,
        "args": SimpleNamespace(seed=3, gradient_checkpointing_kwargs=None),
        "accelerator": SimpleNamespace(num_processes=1, process_index=0, unwrap_model=lambda model: model),
        "is_deepspeed_enabled": False,
        "is_fsdp_enabled": False,
    }
    return SimpleNamespace(**(values | changes))


def test_a_real_trainer_samples_over_slots(tmp_path: Any) -> None:
    with tiny_training(tmp_path / "run", 1) as training:
        trainer = training.trainer
        trainer.model_wrapped = trainer.model
        sampler = TrlSampler(trainer, rows=4, engine="auto")
        assert sampler.reason == ""
        with sampler.engine() as engine:
            assert isinstance(engine, SlotEngine)
        prompts = [[5, 6, 7], [8, 9]]
        first = TrlSampler(trainer, engine="auto").sample(prompts, 6)
        again = TrlSampler(trainer, engine="auto").sample(prompts, 6)
        trainer.state.global_step = 1
        later = TrlSampler(trainer, engine="auto").sample(prompts, 6)
        assert first == again
        assert first != later
        greedy = TrlSampler(trainer, engine="auto").sample(prompts, 6, 0.0)
        assert [one.ids for one in greedy] == [one.ids for one in TrlSampler(trainer).sample(prompts, 6, 0.0)]
        assert trainer.model.training
        assert all(one.logprobs is not None for one in first)


def test_gradient_checkpointing_is_off_while_slots_sample_and_on_again(tmp_path: Any) -> None:
    with tiny_training(tmp_path / "run", 1, gradient_checkpointing=True) as training:
        trainer = training.trainer
        trainer.model_wrapped = trainer.model
        trainer.model.train()
        trainer.model.gradient_checkpointing_enable()  # as ``train`` does
        base = trainer.accelerator.unwrap_model(trainer.model)
        assert base.is_gradient_checkpointing
        sampler = TrlSampler(trainer, engine="auto")
        assert sampler.reason == ""
        with sampler.engine() as engine:
            assert not base.is_gradient_checkpointing
            assert len(sample_all(engine, [[5, 6]], 4)) == 1
        assert base.is_gradient_checkpointing


def test_colocated_vllm_is_driven_by_its_engine(model: Any, tokenizer: Any) -> None:
    generation = _Generation(LLM(LLMEngine(model, tokenizer.eos_token_id)))
    trainer = _trainer(generation)
    seen: list[SamplingParams] = []
    inner = generation.llm.llm_engine
    add_request = inner.add_request
    inner.add_request = lambda name, prompt, params: (seen.append(params), add_request(name, prompt, params))
    sampler = TrlSampler(trainer, engine="auto", lag=1)
    assert (generation.synced, trainer._last_loaded_step) == (1, 4)
    with sampler.engine() as engine:
        assert isinstance(engine, ColocatedEngine)
        assert engine.lag == 1
        sample_all(engine, [[5, 6]], 4, 0.2)
    TrlSampler(trainer, engine="auto").sample([[5]], 3)
    assert generation.synced == 1
    assert [(one.temperature, one.top_p, one.top_k, one.min_p, one.max_tokens) for one in seen] == [
        (0.2, 0.95, 11, 0.0, 4),
        (0.7, 0.95, 11, 0.0, 3),
    ]
    assert all((one.logprobs, one.n, one.output_kind) == (0, 1, FINAL_ONLY) for one in seen)
    assert generation.llm.log == []


def test_sleeping_vllm_is_woken_for_a_rollout(model: Any, tokenizer: Any) -> None:
    llm = LLM(LLMEngine(model, tokenizer.eos_token_id))
    generation = _Generation(llm, enable_sleep_mode=True, _llm_weights_sleeping=False)
    trainer = _trainer(generation)
    sampler = TrlSampler(trainer, engine="auto")
    sampler.sample([[5]], 2)
    assert llm.log == ["wake ['kv_cache']", "sleep 2"]
    assert generation._llm_weights_sleeping
    sampler.sample([[5]], 2)
    assert generation.synced == 2  # the weights were dropped with the first sleep


def test_server_is_asked_by_every_rank_itself() -> None:
    with vllm_serve(lambda body: (200, completion([7], [-0.5], body["prompt"]))) as server:
        generation = _Generation(mode="server", server_base_url=server.url, served_model="spade-4")
        ranks = SimpleNamespace(num_processes=2, process_index=1)
        sampler = TrlSampler(_trainer(generation, accelerator=ranks), engine="auto")
        assert sampler.collective  # TRL's own generation would be
        assert not sampler.busy(0)
        with sampler.engine() as engine:
            assert isinstance(engine, ServerEngine)
        assert sampler.sample([[5], [6]], 2) == [([7], [-0.5])] * 2
    assert {body["model"] for body in server.bodies} == {"spade-4"}
    assert {(body["temperature"], body["top_k"], body["max_tokens"]) for body in server.bodies} == {(0.7, 11, 2)}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"tensor_parallel_size": 2}, "vllm_tensor_parallel_size"),
        ({"structured_outputs_regex": "a+"}, "vllm_structured_outputs_regex"),
        ({"llm": SimpleNamespace(llm_engine=SimpleNamespace(step=None))}, "LLM.llm_engine has no add_request"),
        ({"llm": None}, "LLM.llm_engine has no add_request"),
    ],
)
def test_vllm_that_cannot_be_driven_so_runs_in_lock_step(changes: dict[str, Any], reason: str) -> None:
    sampler = TrlSampler(_trainer(_Generation(**changes)), engine="auto")
    assert reason in sampler.reason
    with sampler.engine() as engine:
        assert isinstance(engine, LockStepEngine)


def test_changed_trl_costs_speed_and_not_the_run() -> None:
    assert "VLLMGeneration has no sync_weights" in unsupported(_trainer(object()), collective=False)


def test_lock_step_is_told_once_with_its_reason(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trl_engines, "_SAID", set())
    mamba = MambaForCausalLM(MambaConfig(vocab_size=64, hidden_size=16, num_hidden_layers=1, state_size=4))
    config = GenerationConfig(do_sample=True, eos_token_id=1)
    trainer = _trainer(model=mamba, model_wrapped=mamba, generation_config=config)
    with caplog.at_level(logging.WARNING, trl_engines.logger.name):
        for _ in range(2):
            assert TrlSampler(trainer, engine="auto").reason
    assert len([one for one in caplog.records if "lock step" in one.message]) == 1
    other = _trainer(model=mamba, model_wrapped=mamba, generation_config=config)
    assert "ranks" in unsupported(other, collective=True)
    other.use_transformers_continuous_batching = True
    assert "continuous_batching" in unsupported(other, collective=False)


def test_odd_sampling_settings_run_in_lock_step(tokenizer: Any) -> None:
    odd = tiny_model(tokenizer)
    config = GenerationConfig(do_sample=True, eos_token_id=1, no_repeat_ngram_size=3)
    trainer = _trainer(model=odd, model_wrapped=odd, generation_config=config)
    assert "no_repeat_ngram_size" in unsupported(trainer, collective=False)


def test_lock_step_can_be_asked_for(tokenizer: Any) -> None:
    sampler = TrlSampler(_trainer(_Generation()), engine="lock_step")
    assert sampler.reason == "engine is lock_step"
    assert torch.is_grad_enabled()
