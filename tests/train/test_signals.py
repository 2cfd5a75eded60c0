"""SIGTERM and SIGINT end a run cleanly, and a resumed one ends as one that was left alone."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import tinyrun
import torch
from launched import ended
from safetensors.torch import load_file
from transformers import TrainerCallback

from spade_train.callbacks import EXIT_RESUME, last_checkpoint, read_metrics, read_parts
from spade_train.recipe import RunResult, run

ROOT = Path(__file__).parents[2]


class _Signal(TrainerCallback):
    """Sends a signal to its own process before the rollout of one step."""

    def __init__(self, number: int, step: int, times: int = 1) -> None:
        self._number, self._step, self._times = number, step, times

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Send it, if it is time."""
        if state.global_step == self._step:
            for _ in range(self._times):
                os.kill(os.getpid(), self._number)


def _train(folder: Path, *callbacks: TrainerCallback) -> RunResult:
    config = tinyrun.tiny_config(folder, 4)
    tokenizer = tinyrun.tiny_tokenizer()
    session, policy = tinyrun.tiny_session(config, tokenizer), (tinyrun.tiny_model(tokenizer), tokenizer)
    return run(config, resume=True, policy=policy, session=session, callbacks=callbacks)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_saves_and_the_resumed_run_ends_the_same(number: int, finished_run: Path, tmp_path: Path) -> None:
    before = signal.getsignal(number)
    folder = tmp_path / "run"
    result = _train(folder, _Signal(number, 2))
    assert (result.steps, result.stopped, result.interrupted) == (3, signal.Signals(number).name, True)
    assert result.adapter == last_checkpoint(folder) == folder / "checkpoint-3"
    assert not (folder / "adapter").exists()
    assert signal.getsignal(number) is before
    whole = _train(folder)
    assert (whole.steps, whole.stopped, whole.interrupted) == (4, "", False)
    adapters = [load_file(one / "adapter" / "adapter_model.safetensors") for one in (folder, finished_run)]
    assert all(torch.equal(adapters[0][name], adapters[1][name]) for name in adapters[1])
    assert [line["step"] for line in read_metrics(folder)] == [1, 2, 3, 4]
    assert read_parts(folder).to_pylist() == read_parts(finished_run).to_pylist()


def test_signal_in_the_last_step_is_a_finished_run(tmp_path: Path) -> None:
    result = _train(tmp_path / "run", _Signal(signal.SIGTERM, 3))
    assert (result.steps, result.interrupted) == (4, False)
    assert (tmp_path / "run" / "adapter").is_dir()


def test_second_interrupt_ends_at_once(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            _train(tmp_path / "run", _Signal(signal.SIGINT, 1, times=2))
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def _rank(folder: Path, rank: int, port: int, signalled: bool) -> None:
    """One rank of two; only rank 1 gets the signal, if any does."""
    place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "localhost", "MASTER_PORT": port}
    os.environ.update({name: str(value) for name, value in place.items()})
    torch.set_num_threads(1)
    result = _train(folder, *([_Signal(signal.SIGTERM, 1)] if signalled and rank == 1 else []))
    found = {"steps": result.steps, "stopped": result.stopped, "adapter": result.adapter.name}
    (folder / f"rank{rank}.json").write_text(json.dumps(found))


def _two_ranks(folder: Path, *, signalled: bool) -> list[dict[str, Any]]:
    """Run both and return what each of them says of its end."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tinyrun"])  # the heavy libraries, loaded once
    assert ended(*(context.Process(target=_rank, args=(folder, rank, port, signalled)) for rank in range(2))) == [0, 0]
    return [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(2)]


def test_a_signal_to_one_rank_stops_all_and_the_run_goes_on_with_any_number(tmp_path: Path) -> None:
    """Two steps of two ranks, one of one rank, one of two: no document comes twice, none is left out."""
    folder = tmp_path / "run"
    expected = {"steps": 2, "stopped": "SIGTERM", "adapter": "checkpoint-2"}
    assert _two_ranks(folder, signalled=True) == [expected, expected]
    parts = sorted(path.name for path in (folder / "transcripts").iterdir())
    assert parts == [f"step-00000{step}-rank-{rank}.parquet" for step in (1, 2) for rank in (0, 1)]
    assert set(read_parts(folder)["rank"].to_pylist()) == {0, 1}
    alone = _train(folder, _Signal(signal.SIGTERM, 2))
    assert (alone.steps, alone.interrupted) == (3, True)
    expected = {"steps": 4, "stopped": "", "adapter": "adapter"}
    assert _two_ranks(folder, signalled=False) == [expected, expected]
    designs = [row for row in read_parts(folder).to_pylist() if row["type"] == "design"]
    asked = dict.fromkeys((row["step"], row["rank"], *re.findall(r"document (\d+)", row["prompt"])) for row in designs)
    assert list(asked) == [
        *((1, 0, "0"), (1, 1, "1"), (2, 0, "2"), (2, 1, "3")),
        *((3, 0, "4"), (4, 0, "5"), (4, 1, "6")),
    ]
    assert [line["step"] for line in read_metrics(folder)] == [1, 2, 3, 4]


def test_command_exits_with_the_status_that_means_resume(tmp_path: Path) -> None:
    sizes = ["max_steps=50", "documents=1", "designs=2", "plays=2", "minimum_isolation=static"]
    command = [sys.executable, "-c", "import sys; from spade_envs.cli import main; sys.exit(main())", "train"]
    command += ["--config", str(ROOT / "examples/recipes/nano_cpu.yaml"), "--output", str(tmp_path / "run")]
    command += [word for size in sizes for word in ("--set", size)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not (tmp_path / "run" / "metrics.jsonl").is_file():
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate()
    assert process.returncode == EXIT_RESUME == 75, said
    assert "stopped: SIGTERM; go on with --resume" in said
    whole = last_checkpoint(tmp_path / "run")
    assert whole is not None
    assert whole.name == f"checkpoint-{read_metrics(tmp_path / 'run')[-1]['step']}"
