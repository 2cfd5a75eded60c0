"""Turns over slots: the ids of ``generate``, the log-probabilities of the plain forward pass, whatever the schedule."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import tiny_model
from transformers import (
    Gemma2Config,
    Gemma2ForCausalLM,
    GenerationConfig,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MambaConfig,
    MambaForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)

from spade_train.cycle import Sample
from spade_train.engine import TurnRequest, sample_all
from spade_train.engines.draw import Draw, uniforms
from spade_train.engines.kv import UnsupportedModelError
from spade_train.engines.slots import SlotEngine, check_model

SMALL: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "initializer_range": 0.2,
}


@pytest.fixture(scope="module")
def model(tokenizer: Any) -> Any:
    return tiny_model(tokenizer).eval()


@pytest.fixture(autouse=True)
def _no_grad() -> Iterator[None]:
    with torch.no_grad():
        yield


def _scores(model: Any, context: list[int], ids: list[int], temperature: float = 1.0) -> torch.Tensor:
    logits = model(torch.tensor([context + ids]), use_cache=False).logits[0].float()
    logprobs = torch.log_softmax(logits / temperature, -1)[len(context) - 1 : -1]
    return logprobs.gather(1, torch.tensor(ids)[:, None])[:, 0]


def _contexts(count: int, longest: int, seed: int = 0) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [rng.integers(5, 300, rng.integers(1, longest + 1)).tolist() for _ in range(count)]


def test_greedy_ids_are_those_of_generate(model: Any, tokenizer: Any) -> None:
    contexts = _contexts(9, 40)
    engine = SlotEngine(model, Draw(0.0), [tokenizer.eos_token_id, 7], slots=4)
    for context, sample in zip(contexts, sample_all(engine, contexts, 12), strict=True):
        output = model.generate(
            torch.tensor([context]),
            generation_config=GenerationConfig(
                max_new_tokens=12, do_sample=False, eos_token_id=[tokenizer.eos_token_id, 7], pad_token_id=0
            ),
        )
        assert sample.ids == output[0, len(context) :].tolist()
        assert torch.tensor(sample.logprobs).sub(_scores(model, context, sample.ids)).abs().max() < 1e-5


def _converse(
    engine: SlotEngine, starts: list[list[int]], turns: list[int], lengths: list[int], *, delay: int = 0
) -> dict[tuple[int, int], tuple[list[int], Sample]]:
    """Run conversations with scripted observations; answers come ``delay`` collections late."""
    contexts = {key: list(start) for key, start in enumerate(starts)}
    at = dict.fromkeys(contexts, 0)
    said: dict[tuple[int, int], tuple[list[int], Sample]] = {}
    engine.submit([TurnRequest(key, context, lengths[key]) for key, context in contexts.items()])
    late: list[list[TurnRequest]] = [[] for _ in range(delay)]
    live = len(starts)
    while live:
        again = []
        for key, sample in engine.collect(1 if delay else 0):
            said[key, at[key]] = (contexts[key], sample)
            at[key] += 1
            if at[key] == turns[key]:
                engine.release([key])
                live -= 1
                continue
            observation = np.random.default_rng((key, at[key])).integers(5, 300, 1 + 7 * key % 11).tolist()
            contexts[key] = contexts[key] + sample.ids + observation
            again.append(TurnRequest(key, contexts[key], lengths[key], turn=at[key]))
        late.append(again)
        engine.submit(late.pop(0))
    return said


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_schedule_samples_what_the_model_says(model: Any, tokenizer: Any, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 7))
    shared = _contexts(1, 80, seed=data.draw(st.integers(0, 3)))[0] * data.draw(st.integers(0, 1))
    starts = [shared + tail for tail in _contexts(count, 30, seed=data.draw(st.integers(0, 100)))]
    turns = data.draw(st.lists(st.integers(1, 4), min_size=count, max_size=count))
    lengths = data.draw(st.lists(st.integers(1, 9), min_size=count, max_size=count))
    temperature = data.draw(st.sampled_from([0.6, 1.0]))
    engine = SlotEngine(
        model,
        Draw(temperature),
        [tokenizer.eos_token_id],
        slots=data.draw(st.integers(1, 5)),
        seed=(3,),
        chunk_tokens=data.draw(st.sampled_from([1, 16, 4096])),
    )
    said = _converse(engine, starts, turns, lengths, delay=data.draw(st.integers(0, 2)))
    assert len(said) == sum(turns)
    for (key, turn), (context, sample) in said.items():
        ids, logprobs = sample
        assert logprobs is not None
        assert 0 < len(ids) == len(logprobs) <= lengths[key]
        assert len(ids) == lengths[key] or ids[-1] == tokenizer.eos_token_id
        assert tokenizer.eos_token_id not in ids[:-1]
        expected = _scores(model, context, ids, temperature)
        assert torch.tensor(logprobs).sub(expected).abs().max() < 1e-5
        numbers = uniforms((3,), key, turn, lengths[key])
        logits = model(torch.tensor([context]), use_cache=False).logits[0, -1].float() / temperature
        cumulated = torch.softmax(logits, -1).cumsum(-1)
        low, high = float(cumulated[ids[0]] - torch.softmax(logits, -1)[ids[0]]), float(cumulated[ids[0]])
        assert low - 1e-5 <= float(numbers[0]) <= high + 1e-5, "the token is not the one that the number falls on"


def test_the_same_turns_come_out_of_any_number_of_slots(model: Any, tokenizer: Any) -> None:
    starts, turns, lengths = _contexts(8, 50), [3, 1, 2, 4, 1, 1, 2, 3], [8, 3, 9, 5, 6, 2, 7, 4]
    said = [
        _converse(SlotEngine(model, Draw(), [tokenizer.eos_token_id], slots=slots, seed=(5, 1)), starts, turns, lengths)
        for slots in (1, 3, 8)
    ]
    ids = [{place: sample.ids for place, (_, sample) in one.items()} for one in said]
    assert ids[0] == ids[1] == ids[2]
    other = SlotEngine(model, Draw(), [tokenizer.eos_token_id], slots=3, seed=(5, 2))
    assert {place: sample.ids for place, (_, sample) in _converse(other, starts, turns, lengths).items()} != ids[0]


def test_observations_and_shared_beginnings_are_computed_once(model: Any, tokenizer: Any) -> None:
    shared = _contexts(1, 400, seed=4)[0]
    shared = (shared * 400)[:200]
    starts = [[*shared, 10 + key] for key in range(6)]
    engine = SlotEngine(model, Draw(), [], slots=6)
    _converse(engine, starts, [1] * 6, [2] * 6)
    assert engine.read == 200  # the first one reads it, the others copy and decode their own last id
    engine = SlotEngine(model, Draw(), [], slots=2)
    _converse(engine, [[*shared, 10]], [3], [4])
    observations = sum(len(np.random.default_rng((0, turn)).integers(5, 300, 1)) for turn in (1, 2))
    assert engine.read == 200 + observations  # the sampled last id of a turn; the observation's last one is decoded


@pytest.mark.parametrize("chunk_tokens", [64, 4096])
def test_every_shared_stretch_is_computed_once(model: Any, chunk_tokens: int) -> None:
    rng = np.random.default_rng(0)
    system, contexts = rng.integers(5, 390, 150).tolist(), []
    for _ in range(4):
        environment = system + rng.integers(5, 390, 120).tolist()
        contexts += [environment + rng.integers(5, 390, 20).tolist() for _ in range(8)]
    engine = SlotEngine(model, Draw(), [], slots=12, chunk_tokens=chunk_tokens)
    samples = sample_all(engine, contexts, 3)
    assert engine.read <= 150 + 4 * 120 + 32 * 19
    for context, sample in list(zip(contexts, samples, strict=True))[::5]:
        assert torch.tensor(sample.logprobs).sub(_scores(model, context, sample.ids)).abs().max() < 1e-5


def test_finished_conversations_make_room_at_once(model: Any) -> None:
    engine = SlotEngine(model, Draw(), [], slots=2)
    engine.submit([TurnRequest(key, [5, 6, 7], length) for key, length in enumerate((2, 6, 3))])
    assert [key for key, _ in engine.collect()] == [0]
    engine.release([0])
    assert [key for key, _ in engine.collect()] == [2]
    assert engine.steps == 5  # conversation 2 began right after the second step, while 1 went on
    engine.release([2])
    assert [key for key, _ in engine.collect()] == [1]
    assert engine.collect() == []


def test_steps_bound_a_collection(model: Any) -> None:
    engine = SlotEngine(model, Draw(), [], slots=2)
    engine.submit([TurnRequest(0, [5, 6], 5)])
    assert engine.collect(3) == []
    assert engine.steps == 3
    assert [len(sample.ids) for _, sample in engine.collect(3)] == [5]


def test_wrong_requests_are_refused(model: Any) -> None:
    engine = SlotEngine(model, Draw(), [], slots=1)
    with pytest.raises(ValueError, match="at least one token"):
        engine.submit([TurnRequest(0, [5], 0)])
    with pytest.raises(ValueError, match="a context"):
        engine.submit([TurnRequest(0, [], 3)])
    engine.submit([TurnRequest(0, [5], 3), TurnRequest(1, [6], 3)])
    for key in (0, 1):
        with pytest.raises(ValueError, match="running already"):
            engine.submit([TurnRequest(key, [5], 3)])


def test_silent_conversations_give_up_their_slots(model: Any) -> None:
    engine = SlotEngine(model, Draw(0.0), [], slots=2)
    engine.submit([TurnRequest(key, [5 + key, 6, 7], 2) for key in range(4)])
    found = dict(engine.collect())
    assert set(found) == {0, 1}
    found = dict(engine.collect())  # 0 and 1 were not released, and say nothing
    assert set(found) <= {2, 3}
    assert found


@pytest.mark.parametrize(
    ("model_class", "config"),
    [
        (LlamaForCausalLM, LlamaConfig(**SMALL)),
        (Qwen3MoeForCausalLM, Qwen3MoeConfig(**SMALL, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16)),
        (Gemma2ForCausalLM, Gemma2Config(**SMALL, sliding_window=4, attn_implementation="eager")),
        (GPT2LMHeadModel, GPT2Config(vocab_size=64, n_embd=32, n_layer=2, n_head=2, initializer_range=0.2)),
    ],
)
def test_other_families_agree_with_their_plain_forward_pass(model_class: Any, config: Any) -> None:
    torch.manual_seed(0)
    model = model_class(config).eval()
    check_model(model)
    contexts = [[one % 60 for one in context] for context in _contexts(5, 30)]
    engine = SlotEngine(model, Draw(), [], slots=3)
    for context, sample in zip(contexts, sample_all(engine, contexts, 8), strict=True):
        assert torch.tensor(sample.logprobs).sub(_scores(model, context, sample.ids)).abs().max() < 1e-5


def test_models_without_such_a_cache_are_recognised(tokenizer: Any) -> None:
    mamba = MambaForCausalLM(MambaConfig(vocab_size=64, hidden_size=16, num_hidden_layers=1, state_size=4))
    with pytest.raises(UnsupportedModelError):
        check_model(mamba)
    odd = tiny_model(tokenizer)
    odd.config._attn_implementation = "flash_attention_2"
    with pytest.raises(UnsupportedModelError, match="flash_attention_2"):
        check_model(odd)


def test_a_model_that_ignores_positions_is_recognised(model: Any, tokenizer: Any) -> None:
    other = tiny_model(tokenizer)
    forward = other.model.rotary_emb.forward

    def from_zero(states: torch.Tensor, position_ids: torch.Tensor) -> Any:
        return forward(states, position_ids - position_ids[:, :1])

    other.model.rotary_emb.forward = from_zero
    with pytest.raises(UnsupportedModelError, match="off by"):
        check_model(other)


def test_draws_follow_the_distribution() -> None:
    logits = torch.tensor([[0.0, 1.0, 2.0, -1.0]]).repeat(4000, 1)
    numbers = np.random.default_rng(0).random(4000)
    tokens, logprobs = Draw().draw(logits, [0.7] * 4000, numbers.tolist(), None)
    expected = torch.softmax(logits[0] / 0.7, -1)
    found = torch.bincount(torch.tensor(tokens), minlength=4) / 4000
    assert (found - expected).abs().max() < 0.03
    assert logprobs[0] == pytest.approx(math.log(expected[tokens[0]]), abs=1e-5)


def test_truncated_draws_report_the_distribution_they_come_from() -> None:
    logits = torch.tensor([[0.0, 1.0, 2.0, -1.0]])
    only_two = math.log(math.exp(2) / (math.exp(2) + math.exp(1)))
    for draw in (Draw(top_k=2), Draw(top_p=0.85), Draw(min_p=0.3)):
        found = [draw.draw(logits, [1.0], [number], None) for number in (0.0, 0.2, 0.3, 0.999999)]
        assert {tokens[0] for tokens, _ in found} == {1, 2}
        assert found[-1][1][0] == pytest.approx(only_two, abs=1e-5)
    greedy = Draw(top_k=2).draw(logits, [0.0], [0.1], None)
    assert greedy[0] == [2]
    assert greedy[1][0] == pytest.approx(float(torch.log_softmax(logits, -1)[0, 2]), abs=1e-5)


def test_repetition_penalty_is_that_of_generate(model: Any) -> None:
    contexts = _contexts(4, 20)
    engine = SlotEngine(model, Draw(0.0, repetition_penalty=1.7), [], slots=2)
    for context, sample in zip(contexts, sample_all(engine, contexts, 10), strict=True):
        config = GenerationConfig(
            max_new_tokens=10, do_sample=False, repetition_penalty=1.7, pad_token_id=0, eos_token_id=None
        )
        output = model.generate(torch.tensor([context]), generation_config=config)
        assert sample.ids == output[0, len(context) :].tolist()


def test_settings_come_from_a_generation_config() -> None:
    config = GenerationConfig(do_sample=True, temperature=0.6, top_k=20, top_p=0.9, max_new_tokens=3, eos_token_id=1)
    assert Draw.from_generation_config(config) == Draw(0.6, 0.9, 20)
    own = GenerationConfig(min_p=0.1, top_k=5, eos_token_id=2)
    assert Draw.from_generation_config(config, own) == Draw(0.6, 0.9, 20, 0.1)
    assert Draw.from_generation_config(GenerationConfig(do_sample=False, temperature=None)) == Draw(0.0)
    with pytest.raises(ValueError, match="suppress_tokens"):
        Draw.from_generation_config(GenerationConfig(do_sample=True, suppress_tokens=[3]))
    with pytest.raises(ValueError, match="no_repeat_ngram_size"):
        Draw.from_generation_config(config, GenerationConfig(no_repeat_ngram_size=2))
