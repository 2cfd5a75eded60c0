"""Conversations: the same episodes however the engine works, budgets, limits, overlap."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from typing import Any

import pytest
import torch
from doubles import ScriptedSampler, record
from tiny import tiny_model

from spade_envs.play import Episode, PlayConfig, PlayTask, StopReason, start_episodes
from spade_envs.sandbox import Sandbox
from spade_train.converse import converse
from spade_train.cycle import Sample
from spade_train.engine import Engine, LockStepEngine, TurnRequest, engine_of, sample_all
from spade_train.engines.draw import Draw
from spade_train.engines.slots import SlotEngine
from spade_train.rows import Row
from spade_train.tokens import ChatTokens

PLAY = PlayConfig(max_turns=6, turn_tokens=9, episode_tokens=40, system_prompt="Play.")


@pytest.fixture(scope="module")
def model(tokenizer: Any) -> Any:
    return tiny_model(tokenizer).eval()


def _talk(
    sandbox: Sandbox,
    tokens: ChatTokens,
    engine: Engine,
    *,
    episodes: int = 12,
    context: int = 1000,
    play: PlayConfig = PLAY,
) -> tuple[list[Episode], list[Row]]:
    """Play episodes of three programs with 1 to 3 turns each."""
    programs = [sandbox.open(record(index).source) for index in range(3)]
    tasks = [PlayTask(programs[index % 3], index) for index in range(episodes)]
    started = start_episodes(sandbox, tasks, play)
    rows = [Row("agent", "e", tokens.prompt(episode.messages)) for episode in started]
    with torch.no_grad():
        converse(list(zip(started, rows, strict=True)), engine, tokens, sandbox, context)
    for program in programs:
        program.close()
    return started, rows


def _slots(model: Any, tokens: ChatTokens, **settings: Any) -> SlotEngine:
    return SlotEngine(model, Draw(1.2), [tokens.eos], **({"slots": 4, "seed": (1,)} | settings))


def test_rows_do_not_depend_on_slots_nor_on_overlap(sandbox: Sandbox, tokens: ChatTokens, model: Any) -> None:
    said = [
        _talk(sandbox, tokens, _slots(model, tokens, slots=slots, lag=lag))
        for slots, lag in ((1, 0), (4, 0), (12, 0), (4, 1), (4, 3))
    ]
    ids = [[(row.completion_ids, row.mask) for row in rows] for _, rows in said]
    assert all(other == ids[0] for other in ids[1:])
    assert len({len(row.mask) for row in said[0][1]}) > 1
    assert all(episode.stop is not None for episodes, _ in said for episode in episodes)


def test_overlap_gives_the_same_bits_whatever_the_environments_take(
    sandbox: Sandbox, tokens: ChatTokens, model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = _talk(sandbox, tokens, _slots(model, tokens, lag=2))[1]
    run_many = sandbox.run_many
    names = set()

    def slow(batches: Any) -> Any:
        names.add(threading.current_thread().name.split("_")[0])
        time.sleep(0.002 * (len(batches) % 3))
        return run_many(batches)

    monkeypatch.setattr(sandbox, "run_many", slow)
    late = _talk(sandbox, tokens, _slots(model, tokens, lag=2))[1]
    assert "environments" in names
    assert [row.logprobs for row in late] == [row.logprobs for row in plain]
    assert late == plain


def test_recorded_logprobs_are_those_of_the_whole_row(sandbox: Sandbox, tokens: ChatTokens, model: Any) -> None:
    _, rows = _talk(sandbox, tokens, _slots(model, tokens, slots=3))
    for row in rows:
        with torch.no_grad():
            logits = model(torch.tensor([row.context]), use_cache=False).logits[0].float() / 1.2
        logprobs = torch.log_softmax(logits, -1)[len(row.prompt_ids) - 1 : -1]
        logprobs = logprobs.gather(1, torch.tensor(row.completion_ids)[:, None])[:, 0]
        mask = torch.tensor(row.mask, dtype=torch.bool)
        assert (torch.tensor(row.logprobs)[mask] - logprobs[mask]).abs().max() < 1e-5
        assert not torch.tensor(row.logprobs)[~mask].any()


def test_budgets_count_every_sampled_id(sandbox: Sandbox, tokens: ChatTokens) -> None:
    think = tokens.tokenizer.convert_tokens_to_ids("<think>")
    sampler = ScriptedSampler(lambda index, ids: [think] * 50)  # thoughts that never end
    play = PlayConfig(max_turns=6, turn_tokens=9, episode_tokens=20)
    episodes, rows = _talk(sandbox, tokens, LockStepEngine(sampler), play=play)
    assert {episode.stop for episode in episodes} <= {
        StopReason.TRUNCATED,
        StopReason.TERMINATED,
        StopReason.TOKEN_BUDGET,
    }
    for episode, row in zip(episodes, rows, strict=True):
        assert row.tokens == episode.tokens <= 20
        turns = "".join(map(str, row.mask)).split("0")
        assert max(map(len, turns)) <= 9


def test_context_overflow_stops_the_episode_and_frees_its_slot(
    sandbox: Sandbox, tokens: ChatTokens, model: Any
) -> None:
    engine = _slots(model, tokens, slots=2)
    episodes, rows = _talk(sandbox, tokens, engine, context=80)
    stops = [episode.stop for episode in episodes]
    assert stops.count(StopReason.CONTEXT_LIMIT) > 0
    assert None not in stops
    assert all(len(row.context) <= 80 for row in rows)
    assert all(not row.mask or row.mask[-1] == 1 for row in rows)


def test_failing_environment_ends_a_run_with_its_error(sandbox: Sandbox, tokens: ChatTokens, model: Any) -> None:
    class Broken(SlotEngine):
        def collect(self, steps: int = 0) -> list[tuple[int, Sample]]:
            return []

    with pytest.raises(RuntimeError, match="12 conversations wait"):
        _talk(sandbox, tokens, Broken(model, Draw(), [tokens.eos], lag=1))


def test_lock_step_cuts_each_turn_at_its_own_limit() -> None:
    sampler = ScriptedSampler(lambda index, ids: [7] * 9, logprobs=True)
    engine = LockStepEngine(sampler)
    engine.submit([TurnRequest(3, [1], 2), TurnRequest(5, [1, 2], 4)])
    assert engine.collect() == [(3, Sample([7] * 2, [-0.5] * 2)), (5, Sample([7] * 4, [-0.5] * 4))]
    assert engine.collect() == []
    assert sampler.calls == [2, 0]
    engine.submit([TurnRequest(1, [1], 2, 0.3), TurnRequest(2, [1], 2)])
    with pytest.raises(ValueError, match="one temperature"):
        engine.collect()
    engine.submit([TurnRequest(1, [1], 2, 0.3)])
    engine.collect()
    assert sampler.temperatures == [None, None, 0.3]


def test_a_sampler_may_bring_its_own_engine(model: Any, tokens: ChatTokens) -> None:
    sampler = ScriptedSampler(lambda index, ids: [7])
    with engine_of(sampler) as engine:
        assert isinstance(engine, LockStepEngine)
    with torch.no_grad():
        samples = sample_all(_slots(model, tokens), [[5, 6], [7], [5, 6]], 3, 0.0)
    assert samples[0].ids == samples[2].ids


def test_rollouts_need_no_trl() -> None:
    code = (
        "import sys; import spade_train.rollout, spade_train.engines.slots, spade_train.engines.vllm_colocate, "
        "spade_train.engines.vllm_server; print([name for name in sys.modules if name.split('.')[0] == 'trl'])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
