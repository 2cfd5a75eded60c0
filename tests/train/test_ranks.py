"""Several ranks on CPU: nothing hangs where one has nothing to do, all end alike, one failure ends all."""

from __future__ import annotations

import json
import multiprocessing
import os
import socket
import time
from pathlib import Path
from typing import Any

import pytest
import ranks_run
import torch
from safetensors.torch import load_file
from tiny import tiny_model, tiny_tokenizer

from spade_envs.memory import Memory
from spade_train.config import ConfigError
from spade_train.ranks import RankError, sandbox_workers, stop_together

NOTHING = {1: ["nothing", "errors"], 2: ["errors", "nothing"]}


@pytest.fixture(scope="module")
def processes() -> Any:
    """Starts processes that have the heavy libraries loaded already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["ranks_run"])
    return context


def _run(processes: Any, target: Any, folder: Path, world: int, modes: dict[int, list[str]]) -> list[int]:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    started = [processes.Process(target=target, args=(folder, rank, world, port, modes)) for rank in range(world)]
    for process in started:
        process.start()
    end = time.monotonic() + 300
    for process in started:
        process.join(max(1.0, end - time.monotonic()))
        if process.exitcode is None:
            process.kill()
            process.join()
    return [process.exitcode for process in started]


def _notes(folder: Path, world: int) -> list[dict[str, Any]]:
    return [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(world)]


def _assert_identical(folder: Path, world: int) -> None:
    first, *others = (load_file(folder / f"rank{rank}.safetensors") for rank in range(world))
    assert any(weight.abs().sum() > 0 for name, weight in first.items() if "lora_B" in name)
    for other in others:
        assert first.keys() == other.keys()
        assert all(torch.equal(first[name], other[name]) for name in first)


def test_four_ranks_of_which_two_have_nothing_at_times(tmp_path: Path, processes: Any) -> None:
    folder = tmp_path / "run"
    assert _run(processes, ranks_run.train_rank, folder, 4, NOTHING) == [0] * 4
    _assert_identical(folder, 4)
    notes = _notes(folder, 4)
    assert notes[1]["episodes"][0] == notes[2]["episodes"][1] == 0
    assert len({tuple(one["calls"]) for one in notes}) == 1, "every rank must call equally often and as wide"
    assert len({document for one in notes for document in one["documents"]}) == 4 * 2, "no document is drawn twice"
    assert [one["writes"] for one in notes] == [True, False, False, False]
    with Memory.open(folder / "memory", read_only=True) as memory:
        assert {one.id for one in memory.records()} == {key for one in notes for key in one["written"]}


def test_two_sharded_ranks(tmp_path: Path, processes: Any) -> None:
    folder = tmp_path / "run"
    tokenizer = tiny_tokenizer()
    tiny_model(tokenizer).save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    assert _run(processes, ranks_run.train_sharded, folder, 2, {1: NOTHING[1]}) == [0, 0]
    notes = _notes(folder, 2)
    assert all(one["sharded"] for one in notes)
    assert notes[1]["episodes"][0] == 0
    assert notes[0]["calls"] == notes[1]["calls"]
    _assert_identical(folder, 2)
    saved = load_file(folder / "checkpoint-3" / "adapter_model.safetensors")
    ended = load_file(folder / "rank0.safetensors")
    assert len(saved) == len(ended)
    for name, weight in saved.items():
        assert torch.equal(weight, ended[name.replace(".weight", ".default.weight")])


def test_failure_of_one_rank_ends_all_with_the_reason(tmp_path: Path, processes: Any) -> None:
    assert _run(processes, ranks_run.crash_rank, tmp_path / "run", 2, {}) == [1, 1]
    said = [(tmp_path / f"stderr{rank}.txt").read_text() for rank in range(2)]
    assert "rank 1 of 2 stopped: RuntimeError: the prompt is too long" in said[1]
    assert "rank 1 stopped: RuntimeError: the prompt is too long" in said[0]


def test_process_in_a_collective_is_ended(tmp_path: Path) -> None:
    left: list[int] = []
    (tmp_path / "failed-rank-2.txt").write_text("an earlier run's")
    with stop_together(tmp_path, 0, 3, leave=left.append):
        time.sleep(1.2)
        assert not left
        (tmp_path / "failed-rank-1.txt").write_text("ValueError: bad")
        end = time.monotonic() + 20
        while not left and time.monotonic() < end:
            time.sleep(0.1)
    assert left == [1]


def test_error_that_follows_from_another_rank_names_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def lost() -> None:
        with stop_together(tmp_path, 0, 2):
            (tmp_path / "failed-rank-1.txt").write_text("ValueError: bad")
            raise ConnectionError("closed by peer")

    with pytest.raises(RankError, match="rank 1 stopped: ValueError: bad"):
        lost()
    assert not (tmp_path / "failed-rank-0.txt").exists()
    with pytest.raises(KeyError), stop_together(tmp_path, 0, 2):
        raise KeyError("x")
    assert (tmp_path / "failed-rank-0.txt").read_text() == "KeyError: 'x'"
    assert "rank 0 of 2 stopped: KeyError: 'x'" in capsys.readouterr().err
    with pytest.raises(ConfigError), stop_together(tmp_path, 0, 2):
        raise ConfigError("max_steps must be at least 1")
    assert "rank 0 of 2 stopped: max_steps must be at least 1\n" in capsys.readouterr().err
    with stop_together(tmp_path, 0, 2):
        assert not (tmp_path / "failed-rank-0.txt").exists()
    with pytest.raises(KeyError), stop_together(tmp_path / "alone", 0, 1):
        raise KeyError("x")
    assert not (tmp_path / "alone").exists()


def test_workers_are_sized_to_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(96)), raising=False)
    assert sandbox_workers(5, 30) == 5
    assert sandbox_workers(0, 10) == 96
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "8")
    assert sandbox_workers(0, 10) == 12
    assert sandbox_workers(0, 30) == 30
