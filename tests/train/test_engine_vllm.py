"""vLLM in this process and behind HTTP, by its own interfaces: nobody waits, ids and log-probabilities come through."""

from __future__ import annotations

import importlib.util
import json
import math
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tiny import tiny_model
from vllmdoubles import FINAL_ONLY, LLMEngine, SamplingParams, completion, greedy, vllm_serve

from spade_train.engine import TurnRequest, sample_all
from spade_train.engines.draw import Draw
from spade_train.engines.slots import SlotEngine
from spade_train.engines.vllm_colocate import ColocatedEngine
from spade_train.engines.vllm_server import ServerEngine, ServerError


@pytest.fixture(scope="module")
def model(tokenizer: Any) -> Any:
    return tiny_model(tokenizer).eval()


def _parameters(max_tokens: int, temperature: float | None) -> SamplingParams:
    return SamplingParams(
        max_tokens=max_tokens,
        logprobs=0,
        output_kind=FINAL_ONLY,
        temperature=1.0 if temperature is None else temperature,
    )


CONTEXTS = [[5, 6, 7], [8], [9, 10, 11, 12, 13], [20, 21], [30, 5]]


def test_colocated_engine_samples_what_slots_sample(model: Any, tokenizer: Any) -> None:
    eos = tokenizer.eos_token_id
    vllm = ColocatedEngine(LLMEngine(model, eos), _parameters)
    with torch.no_grad():
        expected = sample_all(SlotEngine(model, Draw(0.0), [eos], slots=2), CONTEXTS, 6)
    for one, other in zip(sample_all(vllm, CONTEXTS, 6), expected, strict=True):
        assert one.ids == other.ids
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-5)


def test_colocated_turns_leave_at_once_and_make_room(model: Any) -> None:
    inner = LLMEngine(model, eos=-1, most=2)
    engine = ColocatedEngine(inner, _parameters, lag=1)
    engine.submit([TurnRequest(key, [5, key], length) for key, length in enumerate((2, 5, 1))])
    assert engine.collect(1) == []
    assert [key for key, _ in engine.collect(5)] == [0]
    assert [key for key, _ in engine.collect()] == [2]
    engine.submit([TurnRequest(0, [5, 6, 7], 1, turn=1)])
    assert [key for key, _ in engine.collect()] == [0]
    assert [key for key, _ in engine.collect()] == [1]
    assert engine.collect() == []
    assert inner.running == [2, 2, 2, 2, 1]
    assert engine.steps == 5


def test_colocated_engine_drops_its_requests(model: Any) -> None:
    inner = LLMEngine(model, eos=-1)
    engine = ColocatedEngine(inner, _parameters)
    engine.submit([TurnRequest(4, [5], 9)])
    engine.collect(1)
    engine.close()
    assert inner.aborted == ["spade-0"]
    assert not inner.has_unfinished_requests()


def test_colocated_engine_says_what_is_missing(model: Any) -> None:
    engine = ColocatedEngine(LLMEngine(model, eos=-1), lambda length, _: SamplingParams(max_tokens=length))
    engine.submit([TurnRequest(0, [5], 2)])
    with pytest.raises(RuntimeError, match="log-probability for each of 2 sampled ids from vLLM, got none"):
        engine.collect()
    engine = ColocatedEngine(inner := LLMEngine(model, eos=-1), _parameters)
    engine.submit([TurnRequest(0, [5], 2)])
    inner._requests.clear()
    with pytest.raises(RuntimeError, match="without an answer to 1 requests"):
        engine.collect()


def _answering(model: Any, eos: int) -> Any:
    lock = threading.Lock()

    def answer(body: dict[str, Any]) -> tuple[int, Any]:
        assert body["return_token_ids"] is True
        assert body["logprobs"] == 0
        context, ids, found = body["prompt"], [], []
        assert all(isinstance(token, int) for token in context)
        with lock:
            while len(ids) < body["max_tokens"] and (not ids or ids[-1] != eos):
                token, logprob = greedy(model, context + ids)
                ids.append(token)
                found.append(logprob)
        return 200, completion(ids, found, context)

    return answer


def test_server_engine_samples_what_slots_sample(model: Any, tokenizer: Any) -> None:
    eos = tokenizer.eos_token_id
    with torch.no_grad():
        expected = sample_all(SlotEngine(model, Draw(0.0), [eos], slots=2), CONTEXTS, 6)
    with vllm_serve(_answering(model, eos), models=("base", "adapter")) as server:
        engine = ServerEngine(server.url, {"temperature": 0.7, "top_p": 0.9, "top_k": 0})
        try:
            samples = sample_all(engine, CONTEXTS, 6, 0.3)
        finally:
            engine.close()
    for one, other in zip(samples, expected, strict=True):
        assert one.ids == other.ids
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-5)
    assert {body["model"] for body in server.bodies} == {"base"}
    assert {(body["temperature"], body["top_p"]) for body in server.bodies} == {(0.3, 0.9)}


def test_server_answers_are_taken_up_as_they_come() -> None:
    gate = threading.Event()

    def answer(body: dict[str, Any]) -> tuple[int, Any]:
        if body["prompt"] == [1]:
            gate.wait(10)
        return 200, completion([7], [-0.5], body["prompt"])

    with vllm_serve(answer) as server:
        engine = ServerEngine(server.url, {}, model="policy")
        engine.submit([TurnRequest(key, [key], 3) for key in range(1, 4)])
        found: dict[int, Any] = {}
        while len(found) < 2:
            found |= dict(engine.collect())
        assert set(found) == {2, 3}
        engine.submit([TurnRequest(2, [2, 7, 8], 3, turn=1)])
        assert [key for key, _ in engine.collect()] == [2]
        gate.set()
        assert [key for key, _ in engine.collect()] == [1]
        assert engine.collect() == []
        engine.close()
    assert server.most_at_once[0] >= 2


def test_server_that_is_full_is_asked_again_and_a_refusal_is_told() -> None:
    times: list[float] = []

    def full(body: dict[str, Any]) -> tuple[int, Any]:
        times.append(time.monotonic())
        return (503, {"error": {"message": "busy"}}) if len(times) < 3 else (200, completion([7], [None], [1]))

    with vllm_serve(full) as server:
        engine = ServerEngine(server.url, {}, first_pause=0.01)
        (sample,) = sample_all(engine, [[1]], 3)
        assert sample.ids == [7]
        assert sample.logprobs is not None
        assert math.isnan(sample.logprobs[0])
        engine.close()
    assert len(times) == 3
    too_long = {"error": {"message": "maximum context length is 8 tokens"}}
    with vllm_serve(lambda body: (400, too_long)) as server:
        engine = ServerEngine(server.url, {}, first_pause=0.01)
        with pytest.raises(ServerError, match=r"after 1 attempts: 400 .*maximum context length.*max-model-len"):
            sample_all(engine, [[1] * 9], 3)
        engine.close()
    assert len(server.bodies) == 1


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"choices": [{"text": "no ids"}]}, "expected token_ids"),
        ({"choices": []}, "expected token_ids"),
        ("<html>", "no JSON"),
        (completion([7] * 4, [-1.0] * 4, [1]), "asked for 1 to 3 ids, got 4"),
        (completion([], [], [1]), "got 0"),
    ],
)
def test_unusable_answers_are_told(answer: Any, message: str) -> None:
    with vllm_serve(lambda body: (200, json.loads(json.dumps(answer)))) as server:
        engine = ServerEngine(server.url, {}, first_pause=0.01)
        with pytest.raises(ServerError, match=message):
            sample_all(engine, [[1]], 3)
        engine.close()


def test_absent_server_is_told() -> None:
    with pytest.raises(ServerError, match=r"after 2 attempts: ConnectError.*vllm serve"):
        ServerEngine("http://127.0.0.1:9", {}, retries=1, first_pause=0.01)


def test_closing_drops_what_is_under_way() -> None:
    gate = threading.Event()

    def answer(body: dict[str, Any]) -> tuple[int, Any]:
        gate.wait(10)
        return 200, completion([7], [-0.5], body["prompt"])

    with vllm_serve(answer) as server:
        engine = ServerEngine(server.url, {}, model="policy")
        engine.submit([TurnRequest(0, [1], 3)])
        with pytest.raises(ValueError, match="running already"):
            engine.submit([TurnRequest(0, [1], 3)])
        began = time.monotonic()
        engine.close()
        assert time.monotonic() - began < 5
        gate.set()


def test_who_waits_for_a_turn_is_told_that_the_engine_was_closed() -> None:
    gate, told = threading.Event(), []

    def answer(body: dict[str, Any]) -> tuple[int, Any]:
        gate.wait(20)
        return 200, completion([7], [-0.5], body["prompt"])

    with vllm_serve(answer) as server:
        engine = ServerEngine(server.url, {}, model="policy")
        engine.submit([TurnRequest(0, [1], 3)])

        def wait() -> None:
            for ask in (engine.collect, engine.collect, lambda: engine.submit([TurnRequest(1, [1], 3)])):
                try:
                    ask()
                except ServerError as error:
                    told.append(str(error))

        waiting = threading.Thread(target=wait, daemon=True)
        waiting.start()
        engine.close()
        engine.close()  # closing twice is harmless
        waiting.join(timeout=20)
        gate.set()
    assert len(told) == 3, "a cycle that runs in another thread would wait for ever"
    assert all("closed" in text for text in told)


@pytest.mark.skipif(
    not torch.cuda.is_available() or importlib.util.find_spec("vllm") is None, reason="needs a GPU and vLLM"
)
def test_real_vllm_engine_takes_and_returns_what_the_double_does(tmp_path: Any, tokenizer: Any) -> None:
    import vllm
    from vllm.sampling_params import RequestOutputKind

    policy = tiny_model(tokenizer, hidden=128)
    policy.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    llm = vllm.LLM(
        model=str(tmp_path), dtype="float32", gpu_memory_utilization=0.2, max_model_len=512, enforce_eager=True,
        logprobs_mode="processed_logprobs", enable_prefix_caching=True,
    )  # fmt: skip
    settings = SimpleNamespace(kind=RequestOutputKind.FINAL_ONLY)

    def parameters(max_tokens: int, temperature: float | None) -> Any:
        return vllm.SamplingParams(max_tokens=max_tokens, temperature=0.0, logprobs=0, output_kind=settings.kind)

    samples = sample_all(ColocatedEngine(llm.llm_engine, parameters), CONTEXTS, 6)
    with torch.no_grad():
        expected = sample_all(SlotEngine(policy.cuda().eval(), Draw(0.0), [tokenizer.eos_token_id]), CONTEXTS, 6)
    assert [one.ids for one in samples] == [one.ids for one in expected]
