"""Real updates with a stock GRPOTrainer: where the gradient goes, exact resume after SIGKILL."""

from __future__ import annotations

import json
import multiprocessing
import signal
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import tinyrun
import torch
from launched import ended
from safetensors.torch import load_file
from tinyrun import tiny_training

from spade_envs.memory import HashedTokenEmbedder, Memory
from spade_train.callbacks import STATE_FILE, last_checkpoint, read_metrics
from spade_train.curriculum import ResumeError


def _adapter(folder: Path) -> dict[str, torch.Tensor]:
    return dict(load_file(folder / "adapter" / "adapter_model.safetensors"))


def _identical(first: Path, second: Path) -> bool:
    one, other = _adapter(first), _adapter(second)
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.fixture(scope="module")
def processes() -> Any:
    """Starts processes that have the heavy libraries loaded already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tinyrun"])
    return context


def test_gradient_only_on_sampled_tokens_and_only_in_the_adapter(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []
    with tiny_training(tmp_path / "run", 3, documents=2) as training:
        trainer = training.trainer
        before = {name: weight.detach().clone() for name, weight in trainer.model.named_parameters()}
        log_probabilities, step = trainer._get_per_token_logps_and_entropies, trainer.training_step
        box: dict[str, torch.Tensor] = {}

        def watch(*args: Any, **kwargs: Any) -> Any:
            out = log_probabilities(*args, **kwargs)
            if out[0].requires_grad:
                out[0].register_hook(lambda gradient: box.__setitem__("gradient", gradient.clone()))
            return out

        def record(model: Any, inputs: Any, items: Any = None) -> Any:
            out = step(model, inputs, items)
            batch = trainer._buffered_inputs[(trainer._step - 1) % trainer.args.steps_per_generation]
            seen.append({"batch": batch, "gradient": box["gradient"]})
            return out

        trainer._get_per_token_logps_and_entropies, trainer.training_step = watch, record
        trainer.train()
        after = dict(trainer.model.named_parameters())
    environment = trained = 0
    for one in seen:
        batch, gradient = one["batch"], one["gradient"]
        sampled = (batch["completion_mask"] * batch["tool_mask"]).bool()
        environment += int((batch["completion_mask"].bool() & ~sampled).sum())
        assert not gradient[~sampled].any()
        carrying = sampled & (batch["advantages"][:, None] != 0)
        assert bool((gradient[carrying] != 0).all())
        trained += int(carrying.sum())
    assert environment > 0
    assert trained > 0
    moved = {name for name, weight in after.items() if not torch.equal(weight, before[name])}
    assert moved == {name for name in before if "lora" in name}


def test_update_uses_our_advantages_and_groups_sum_to_zero(tmp_path: Path) -> None:
    used: list[torch.Tensor] = []
    returned: list[list[float]] = []
    rows: list[Any] = []
    with tiny_training(tmp_path / "run", 2, documents=2) as training:
        trainer, reward = training.trainer, training.session.reward

        def spy(**arguments: Any) -> list[float]:
            rows.append(arguments["spade_row"])
            returned.append(reward(**arguments))
            return returned[-1]

        spy.__name__ = "spy"
        trainer.reward_funcs[0] = spy
        generate = trainer._generate_and_score_completions
        trainer._generate_and_score_completions = lambda inputs: used.append(out := generate(inputs)) or out
        trainer.train()
    for batch, mine, cycle in zip(used, returned, rows):
        assert torch.allclose(batch["advantages"], torch.tensor(mine), atol=1e-6)
        sums: dict[tuple[str, str], float] = defaultdict(float)
        for row, value in zip(cycle, mine):
            sums[row.role, row.group] += value
        assert len(sums) > 2
        assert all(abs(total) < 1e-6 for total in sums.values())


def test_a_resumed_run_says_where_it_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "spade_train.recipe")
    folder = tmp_path / "run"

    def said(steps: int) -> str:
        caplog.clear()
        tinyrun.tiny_run(folder, steps)
        return "\n".join(one.getMessage() for one in caplog.records if one.name == "spade_train.recipe")

    assert f"{folder} holds no whole checkpoint: the run starts at its first step" in said(2)
    assert "has done 2 of 2 steps already: nothing is left to train; raise max_steps (--set max_steps=4)" in said(2)
    assert f"{folder} goes on after step 2 of 4" in said(4)
    assert [line["step"] for line in read_metrics(folder)] == [1, 2, 3, 4]


def test_killed_and_resumed_run_ends_bit_identical(tmp_path: Path, processes: Any) -> None:
    whole, killed = tmp_path / "a" / "run", tmp_path / "b" / "run"

    def train(folder: Path, *kill_at: int) -> int:
        return ended(processes.Process(target=tinyrun.tiny_run, args=(folder, 6, *kill_at)))[0]

    assert train(whole) == 0
    assert train(killed, 1) == -signal.SIGKILL
    assert last_checkpoint(killed) is None
    assert train(killed, 5) == -signal.SIGKILL  # started afresh: there was no checkpoint
    assert last_checkpoint(killed) == killed / "checkpoint-4"
    with Memory.open(killed / "memory", embedder=HashedTokenEmbedder()) as memory:
        ahead = memory.position()
    state = json.loads((killed / "checkpoint-4" / STATE_FILE).read_text())
    assert ahead > state["memory_position"], "the kill must come after the memory was written"
    (killed / "checkpoint-5").mkdir()  # as if the kill had cut a checkpoint short
    assert train(killed) == 0
    assert _identical(whole, killed)
    timeless = [
        [{name: value for name, value in line.items() if "seconds" not in name and "time" not in name}
         for line in read_metrics(folder)] for folder in (whole, killed)
    ]  # fmt: skip
    assert timeless[0] == timeless[1]
    assert [line["step"] for line in timeless[1]] == [1, 2, 3, 4, 5, 6]
    records = []
    for folder in (whole, killed):
        with Memory.open(folder / "memory", read_only=True) as memory:
            records.append([(one.id, one.statistics) for one in memory.records()])
    assert records[0] == records[1]
    steps = [json.loads(line)["step"] for line in (killed / "transcripts.jsonl").read_text().splitlines()]
    assert steps == sorted(steps)


def test_finished_run_is_not_overwritten(tmp_path: Path) -> None:
    with tiny_training(tmp_path / "run", 2) as training:
        training.trainer.train()
    with tiny_training(tmp_path / "run", 2) as training, pytest.raises(ResumeError, match="holds a run already"):
        training.trainer.train()
