"""Windows in real runs: exact resume in the middle of one, and ranks that compare their programs."""

from __future__ import annotations

import json
import multiprocessing
import signal
import socket
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import tinyrun
import torch
import windowranks
from launched import ended
from safetensors.torch import load_file
from tinyrun import tiny_training

from spade_train.callbacks import last_checkpoint, read_metrics
from spade_train.config import ConfigError
from spade_train.curriculum import ResumeError


@pytest.fixture(scope="module")
def processes() -> Any:
    """Starts processes that have the heavy libraries loaded already."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tinyrun", "windowranks"])
    return context


def _timeless(folder: Path) -> list[dict[str, Any]]:
    lines = read_metrics(folder)
    return [
        {name: value for name, value in one.items() if "second" not in name and "time" not in name} for one in lines
    ]


def test_killed_within_a_window_and_resumed_run_ends_bit_identical(tmp_path: Path, processes: Any) -> None:
    whole, killed = tmp_path / "a" / "run", tmp_path / "b" / "run"

    def train(folder: Path, kill_at: int = 0) -> int:
        arguments = {"regenerate_every": 3, "designer_reward": "learning_potential"}
        process = processes.Process(target=tinyrun.tiny_run, args=(folder, 6, kill_at), kwargs=arguments)
        return ended(process)[0]

    assert train(whole) == 0
    assert train(killed, 3) == -signal.SIGKILL
    assert last_checkpoint(killed) == killed / "checkpoint-2"  # two of three rollouts of the first window
    state = json.loads((killed / "checkpoint-2" / "spade_window_0.json").read_text())
    assert state["rollouts"] == 2
    assert len(state["pending"]) == 4
    assert all(one["row"]["scored"] and one["row"]["logprobs"] for one in state["pending"])
    assert train(killed) == 0
    adapters = [load_file(folder / "adapter" / "adapter_model.safetensors") for folder in (whole, killed)]
    assert all(torch.equal(adapters[0][name], adapters[1][name]) for name in adapters[0])
    assert _timeless(whole) == _timeless(killed)
    lines = read_metrics(whole)
    assert ["off_policy/rows" in line for line in lines] == [False, False, False, True, False, True]
    assert ["design/valid" in line for line in lines] == [True, False, False, True, False, False]


def test_a_checkpoint_without_this_ranks_window_is_refused(tmp_path: Path) -> None:
    with tiny_training(tmp_path / "run", 2, regenerate_every=3) as training:
        training.trainer.train()
    (tmp_path / "run" / "checkpoint-2" / "spade_window_0.json").unlink()
    with (
        tiny_training(tmp_path / "run", 3, regenerate_every=3) as training,
        pytest.raises(ResumeError, match="spade_window_0"),
    ):
        training.trainer.train(resume_from_checkpoint=str(tmp_path / "run" / "checkpoint-2"))


def test_a_checkpoint_with_windows_of_more_ranks_is_refused(tmp_path: Path) -> None:
    with tiny_training(tmp_path / "run", 2, regenerate_every=3) as training:
        training.trainer.train()
    checkpoint = tmp_path / "run" / "checkpoint-2"
    (checkpoint / "spade_window_1.json").write_text((checkpoint / "spade_window_0.json").read_text())
    with (
        tiny_training(tmp_path / "run", 3, regenerate_every=3) as training,
        pytest.raises(ResumeError, match="windows of more ranks"),
    ):
        training.trainer.train(resume_from_checkpoint=str(checkpoint))


def test_a_trainer_that_takes_late_rows_for_its_own_is_refused(tmp_path: Path) -> None:
    with tiny_training(tmp_path / "run", 2, regenerate_every=3) as training:
        training.trainer._spade_corrects_late_rows = False
        with pytest.raises(ConfigError, match="correct_late_rows"):
            training.trainer.train()


def test_two_ranks_compare_programs_for_one_skill(tmp_path: Path, processes: Any) -> None:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    folder = tmp_path / "run"
    both = [processes.Process(target=windowranks.train_windows, args=(folder, rank, 2, port)) for rank in range(2)]
    assert ended(*both) == [0, 0]
    adapters = [load_file(folder / f"rank{rank}.safetensors") for rank in range(2)]
    assert all(torch.equal(adapters[0][name], adapters[1][name]) for name in adapters[0])
    ranks = [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(2)]
    windows = [json.loads((folder / "checkpoint-4" / f"spade_window_{rank}.json").read_text()) for rank in range(2)]
    assert windows[0]["environments"] != windows[1]["environments"]
    for name in ("fast", "slow"):  # averages over both ranks' environments
        assert windows[0][name] == windows[1][name] != {}
    compared = 0
    for steps in zip(*ranks, strict=True):
        rewards: dict[str, list[float]] = defaultdict(list)
        counts = {"designer": 0, "agent": 0}
        for step in steps:
            for row in step["rows"]:
                if row["role"] in counts and row["reward"] is not None:
                    counts[row["role"]] += 1
                    if row["role"] == "designer":
                        rewards[row["group"]].append(row["reward"])
        weight = max(1.0, min(50.0, 2 * counts["agent"] / counts["designer"])) if counts["designer"] else 1.0
        for step in steps:
            assert sum(row["advantage"] for row in step["rows"]) == pytest.approx(0.0, abs=1e-6)
            for row, used in zip(step["rows"], step["used"], strict=True):
                first = used[0] if isinstance(used, list) else used
                ratio = row["ratio"][0] if row["ratio"] else 1.0
                assert first == pytest.approx(row["advantage"] * ratio, abs=1e-5)  # the trainer's baseline did nothing
                if row["role"] == "designer":
                    mean = sum(rewards[row["group"]]) / len(rewards[row["group"]])
                    assert row["advantage"] == pytest.approx(weight * (row["reward"] - mean), abs=1e-6)
                    compared += 1
    assert compared == 2 * 2 * 4  # two windows, two ranks, four programs
