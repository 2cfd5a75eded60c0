"""Self-play feeds TRL's asynchronous trainer: the whole way on CPU, with a server that samples from the real policy."""

from __future__ import annotations

import math
import queue
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from liveserver import LiveServer
from tiny import tiny_model
from tinyrun import tiny_config, tiny_session
from trl.experimental.async_grpo import async_grpo_trainer, packing
from trl.experimental.async_grpo.async_grpo_trainer import (
    DataCollatorForRollout,
    FixedCountBatcher,
    RolloutQueueDataset,
    RolloutWorkerProtocol,
)

from spade_train.async_adapter import SelfPlayWorker, WorkerError, rollout_sample, sampling_of
from spade_train.async_recipe import build_async_trainer
from spade_train.callbacks import read_metrics
from spade_train.rows import Row


def _varlen(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    starts_q: torch.Tensor,
    starts_k: torch.Tensor,
    *_: Any,
    softmax_scale: float,
    **__: Any,
) -> torch.Tensor:
    """What flash attention computes: causal within each segment, aligned at the ends."""
    result = torch.empty_like(query)
    groups = query.size(1) // key.size(1)
    for index in range(len(starts_q) - 1):
        rows, path = slice(starts_q[index], starts_q[index + 1]), slice(starts_k[index], starts_k[index + 1])
        q = query[rows].transpose(0, 1)
        k, v = (one[path].transpose(0, 1).repeat_interleave(groups, 0) for one in (key, value))
        mask = torch.ones(q.size(1), k.size(1), dtype=torch.bool).tril(k.size(1) - q.size(1))
        result[rows] = torch.nn.functional.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, scale=softmax_scale
        ).transpose(0, 1)
    return result


@pytest.fixture
def server(tokenizer: Any) -> Iterator[LiveServer]:
    """A server that holds the tiny policy."""
    live = LiveServer(tiny_model(tokenizer), tokenizer.eos_token_id)
    yield live
    live.close()


def _worker(tmp_path: Path, tokenizer: Any, server: LiveServer, **settings: Any) -> SelfPlayWorker:
    config = tiny_config(tmp_path / "run", 3, temperature=1.0, top_k=0, top_p=1.0)
    session = tiny_session(config, tokenizer)
    return SelfPlayWorker(session, server.url, sampling_of(config), **settings)


def test_trainer_learns_from_cycles_that_run_beside_it(
    tmp_path: Path, tokenizer: Any, server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(async_grpo_trainer, "get_peak_flops_per_device", lambda *_: None)  # it asks CUDA for a name
    monkeypatch.setattr(packing, "_flash_attn", lambda: SimpleNamespace(flash_attn_varlen_func=_varlen))
    tiny_model(tokenizer).save_pretrained(tmp_path / "model")
    config = tiny_config(
        tmp_path / "run", 3, temperature=1.0, top_k=0, model=str(tmp_path / "model"), use_vllm=False, logging_steps=1
    )
    trainer = build_async_trainer(
        config, server.url, tokenizer=tokenizer, session=tiny_session(config, tokenizer), weight_transfer=server,
        gradient_accumulation_steps=2, per_device_train_batch_size=4, token_budget=0, weight_sync_steps=1,
        max_staleness=8, dtype="float32", save_strategy="no",
    )  # fmt: skip
    worker = trainer.rollout_worker
    before = {name: weight.detach().clone() for name, weight in trainer.model.named_parameters()}
    trainer.train()
    moved = {
        name for name, weight in trainer.model.named_parameters() if not torch.allclose(weight, before[name], atol=1e-5)
    }
    assert moved
    assert all("lora" in name for name in moved)
    lines = read_metrics(config.output_dir)
    assert len(lines) == 3
    assert lines[0]["ratio"] == pytest.approx(1.0, abs=1e-3), "ids, mask and log-probabilities must belong together"
    assert any("design/valid" in line for line in lines)
    assert server.updates == 4, "at the start and after each step"
    assert worker.cycles >= 1
    assert not worker._thread.is_alive()


def test_queued_rows_are_packed_with_their_own_ids_and_advantages(
    tmp_path: Path, tokenizer: Any, server: LiveServer
) -> None:
    worker = _worker(tmp_path, tokenizer, server, waiting=500)
    protocol = [name for name in vars(RolloutWorkerProtocol) if not name.startswith("_")]
    assert all(callable(getattr(worker, name)) for name in protocol)
    assert all(hasattr(worker, name) for name in RolloutWorkerProtocol.__annotations__)
    worker._cycle()
    worker._cycle()
    samples = list(worker.rollout_buffer.queue)
    assert len(samples) >= 4
    for sample in samples:
        assert len(sample.input_ids) == len(sample.completion_mask) == len(sample.old_log_probs)
        assert sample.completion_mask.sum() > 0
        assert not sample.old_log_probs[sample.completion_mask == 0].any()
        assert sample.advantage != 0.0
    dataset = RolloutQueueDataset(worker.rollout_buffer, lambda: 0, worker.check_health, 60.0, defaultdict(list))
    rows = next(iter(FixedCountBatcher(dataset, 1, 4)))
    batch = DataCollatorForRollout(pad_token_id=0).torch_call([rows])
    trained = sum(int(sample["completion_mask"].sum()) for row in rows for sample in row.samples)
    assert batch["token_index"].numel() == trained
    assert set(batch["advantages"][0].tolist()) <= set(torch.tensor([sample.advantage for sample in samples]).tolist())
    assert worker._session.memory.records()
    worker.stop()


def test_turns_ask_for_the_newest_adapter(tmp_path: Path, tokenizer: Any, server: LiveServer) -> None:
    worker = _worker(tmp_path, tokenizer, server, waiting=500)
    worker._cycle()
    server.adapters.append("trl-policy-v3")
    worker.update_model_version(3)
    worker._cycle()
    assert set(server.asked) == {"base", "trl-policy-v3"}
    worker.update_model_version(4)
    assert worker._engine.model == "base", "merged weights go by the server's own name"
    assert {sample.model_version for sample in worker.rollout_buffer.queue} <= {0, 3}
    worker.stop()


def test_failed_and_silent_workers_are_told(tmp_path: Path, tokenizer: Any, server: LiveServer) -> None:
    worker = _worker(tmp_path, tokenizer, server)

    def broken(*_: Any, **__: Any) -> Any:
        raise ValueError("the corpus is gone")

    worker._session.run_cycle = broken
    worker.start()
    worker._thread.join(timeout=60)
    with pytest.raises(WorkerError, match="cycle 0: the corpus is gone"):
        worker.check_health(1e6)
    worker._error = None
    worker._engine.beat = time.time() - 100.0
    worker.check_health(200.0)
    with pytest.raises(WorkerError, match="no turn has come"):
        worker.check_health(50.0)
    worker.stop()
    with pytest.raises(queue.Empty):
        worker.rollout_buffer.get_nowait()


def test_sample_of_a_row_by_hand() -> None:
    row = Row("agent", "e", [7, 8], [1, 2, 3], [1, 0, 1], [-0.5, 0.0, math.nan], reward=1.0, scored=True)
    sample = rollout_sample(row, 0.25, 4, 9)
    assert sample.input_ids.tolist() == [7, 8, 1, 2, 3]
    assert sample.completion_mask.tolist() == [0, 0, 1, 0, 0]
    assert sample.old_log_probs.tolist() == [0.0, 0.0, -0.5, 0.0, 0.0]
    assert (sample.advantage, sample.model_version, sample.group_id) == (0.25, 4, 9)
    assert sample.metrics == {"reward": 1.0}
    with pytest.raises(ValueError, match="one log-probability"):
        rollout_sample(Row("agent", "e", [7], [1], [1]), 1.0, 0, 0)
