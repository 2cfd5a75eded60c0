"""Requests over slots: the replies of ``generate``, whatever runs beside them; histories are read once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from typing import Any

import pytest
import torch

from spade_envs.models import load_model
from spade_envs.models.base import Message, Sampling
from spade_envs.models.transformers import TransformersModel
from spade_train.engines.kv import UnsupportedModelError
from spade_train.serving import slot_batcher
from spade_train.serving.batcher import Batcher, Job
from spade_train.serving.slot_batcher import SlotBatcher, answers


@pytest.fixture(scope="module")
def model() -> TransformersModel:
    made = load_model("nano")
    assert isinstance(made, TransformersModel)
    return made


@pytest.fixture
def batcher(model: TransformersModel) -> Iterator[SlotBatcher]:
    made = SlotBatcher(model, 8)
    yield made
    made.close()


def _asked(text: str, *further: str) -> list[Message]:
    roles = ("user", "assistant")
    return [{"role": roles[place % 2], "content": content} for place, content in enumerate((text, *further))]


def _job(messages: list[Message], **settings: Any) -> Job:
    return Job(messages, [], Sampling(**({"max_tokens": 12, "temperature": 1.0, "seed": 3} | settings)))


def test_replies_are_those_of_generate_whatever_runs_beside_them(
    model: TransformersModel, batcher: SlotBatcher
) -> None:
    jobs = [
        _job(_asked(f"reverse: ant bee {n}"), temperature=(0.0, 0.7, 1.0)[n % 3], seed=n, max_tokens=3 + n, top_p=top_p)
        for n, top_p in enumerate([1.0] * 9 + [0.4] * 9)
    ]
    replies = [batcher.submit(job) for job in jobs]
    for job, reply in zip(jobs, replies, strict=True):
        (alone,) = model.complete([job.messages], job.sampling, seeds=[job.sampling.seed])
        if job.sampling.top_p == 1.0:  # generate numbers what top_p leaves by probability, the slots by id
            assert reply.result(60) == alone
        else:
            assert reply.result(60).prompt_tokens == alone.prompt_tokens
            assert reply.result(60) == batcher.submit(_job(job.messages, **_settings(job))).result(60)
    assert batcher.busiest > 1


def _settings(job: Job) -> dict[str, Any]:
    return {name: getattr(job.sampling, name) for name in ("max_tokens", "temperature", "seed", "top_p")}


def test_a_narrow_top_p_is_the_likeliest_token(model: TransformersModel, batcher: SlotBatcher) -> None:
    greedy, narrow, wide = (
        _job(_asked("reverse: ant bee"), **settings)
        for settings in ({"temperature": 0.0}, {"top_p": 1e-6}, {"temperature": 3.0, "seed": 1})
    )
    texts = [batcher.submit(job) for job in (greedy, narrow, wide)]
    assert texts[0].result(60).text == texts[1].result(60).text != texts[2].result(60).text


def test_dialogues_side_by_side_read_their_histories_once(model: TransformersModel, batcher: SlotBatcher) -> None:
    histories = [_asked(f"{animal} " * 60) for animal in ("ant", "bee")]
    for history in histories:
        batcher.submit(_job(history)).result(60)
    before, new = batcher.tokens_read, 0
    for _ in range(3):
        for history in histories:
            length = len(model.prompt(history))
            history += [{"role": "assistant", "content": "ok"}, {"role": "user", "content": "again"}]
            new += len(model.prompt(history)) - length
            batcher.submit(_job(history)).result(60)
    # A reply is read again from where the history has other words than it, and so is the beginning of the next one.
    assert batcher.tokens_read - before <= new + 6 * 8
    assert batcher.tokens_read - before < 6 * 60


def test_long_requests_get_fewer_slots(model: TransformersModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "max_batch_tokens", 128)
    batcher = SlotBatcher(model, 8)
    short = [batcher.submit(_job(_asked(f"ant {n}"), max_tokens=2)) for n in range(6)]
    long = [batcher.submit(_job(_asked("bee " * 40), max_tokens=60, seed=n)) for n in range(3)]
    again = batcher.submit(_job(_asked("ant"), max_tokens=2))
    assert all(reply.result(60).completion_tokens for reply in (*short, *long, again))
    assert batcher._slots == 1
    batcher.close()


def test_what_nobody_waits_for_is_left_off(model: TransformersModel) -> None:
    batcher = SlotBatcher(model, 1)
    endless = _job(_asked("ant"), max_tokens=200, temperature=8.0)
    started = batcher.submit(endless)
    while not batcher._running:
        time.sleep(0.001)
    assert started.cancel()
    assert batcher.submit(_job(_asked("bee"), max_tokens=2)).result(60).completion_tokens
    assert not batcher._running
    batcher.close()


def test_a_prompt_that_fits_nowhere_costs_the_others_nothing(model: TransformersModel, batcher: SlotBatcher) -> None:
    replies = [batcher.submit(_job(_asked(text))) for text in ("ant", "word " * 400, "bee")]
    assert [bool(reply.result(60).error) for reply in replies] == [False, True, False]


def test_after_a_failure_others_are_answered(
    model: TransformersModel, batcher: SlotBatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = batcher.submit(_job(_asked("ant"))).result(60)

    def fail(*_: Any) -> None:
        raise MemoryError("no room")

    with monkeypatch.context() as patched:
        patched.setattr(batcher._engine, "collect", lambda steps: fail())
        with pytest.raises(MemoryError):
            batcher.submit(_job(_asked("ant"))).result(60)
    assert batcher.submit(_job(_asked("ant"))).result(60) == expected


def test_a_conversation_that_cannot_be_read_fails_alone(
    model: TransformersModel, batcher: SlotBatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise KeyError("no such role")

    with monkeypatch.context() as patched:
        patched.setattr(model, "prompt", fail)
        with pytest.raises(KeyError):
            batcher.submit(_job(_asked("ant"))).result(60)
    assert batcher.submit(_job(_asked("ant"))).result(60).completion_tokens


def test_the_end_cancels_what_waits(model: TransformersModel) -> None:
    batcher = SlotBatcher(model, 1)
    replies = [batcher.submit(_job(_asked("ant"), max_tokens=200, temperature=8.0, seed=n)) for n in range(6)]
    batcher.close()
    with pytest.raises(CancelledError):
        replies[-1].result(60)


def test_a_model_that_cannot_be_run_over_slots_answers_in_batches(
    model: TransformersModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Any) -> None:
        raise UnsupportedModelError("it has layers of kind linear_attention")

    monkeypatch.setattr(slot_batcher, "check_model", refuse)
    batcher = answers(model, 4)
    assert isinstance(batcher, Batcher)
    assert batcher.submit(_job(_asked("ant"))).result(60).completion_tokens
    batcher.close()


def test_the_tiny_model_runs_on_one_thread(model: TransformersModel, batcher: SlotBatcher) -> None:
    before = torch.get_num_threads()
    batcher.submit(_job(_asked("ant"))).result(60)
    assert model.one_thread
    assert torch.get_num_threads() == before
