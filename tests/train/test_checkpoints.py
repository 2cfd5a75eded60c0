"""Whole checkpoints, damaged ones, and disks that are full."""

from __future__ import annotations

import errno
import json
import multiprocessing
import resource
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
import tinyrun
import torch
from safetensors.torch import load_file

from spade_train.callbacks import STATE_FILE, damage, last_checkpoint, read_alarms, read_metrics, read_parts
from spade_train.callbacks.disk import DiskFullError, explained, is_full
from spade_train.curriculum import ResumeError
from spade_train.recipe import run


@pytest.fixture
def copied(finished_run: Path, tmp_path: Path) -> Path:
    """A copy of the run, to be damaged."""
    shutil.copytree(finished_run, tmp_path / "run")
    return tmp_path / "run"


def _same_adapter(one: Path, other: Path) -> bool:
    first, second = (load_file(folder / "adapter" / "adapter_model.safetensors") for folder in (one, other))
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def _files(checkpoint: Path) -> list[Path]:
    return sorted(path for path in checkpoint.rglob("*") if path.is_file())


def test_every_file_is_sealed(finished_run: Path) -> None:
    assert last_checkpoint(finished_run) == finished_run / "checkpoint-4"
    state = json.loads((finished_run / "checkpoint-4" / STATE_FILE).read_text())
    names = {path.name for path in _files(finished_run / "checkpoint-4")}
    assert set(state["files"]) == names - {STATE_FILE}
    assert {"adapter_model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state.pth", "trainer_state.json"} <= names


def test_each_file_truncated_in_turn_gives_the_checkpoint_before(copied: Path) -> None:
    for path in _files(copied / "checkpoint-4"):
        whole = path.read_bytes()
        for length in {0, len(whole) // 2, len(whole) - 1}:
            path.write_bytes(whole[:length])
            assert damage(copied / "checkpoint-4"), f"{path.name} cut to {length} bytes"
            assert last_checkpoint(copied) == copied / "checkpoint-2"
        path.unlink()
        assert last_checkpoint(copied) == copied / "checkpoint-2"
        path.write_bytes(whole)
    assert damage(copied / "checkpoint-4") == ""


def test_changed_bytes_are_found(copied: Path) -> None:
    path = copied / "checkpoint-4" / "optimizer.pt"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    assert "digest differs" in damage(copied / "checkpoint-4")


def test_resume_from_before_a_torn_checkpoint_ends_the_same(
    finished_run: Path, copied: Path, caplog: pytest.LogCaptureFixture
) -> None:
    torn = copied / "checkpoint-4" / "optimizer.pt"
    torn.write_bytes(torn.read_bytes()[:100])
    shutil.rmtree(copied / "adapter")
    tinyrun.tiny_run(copied, 4)
    assert f"removing {copied / 'checkpoint-4'}" in caplog.text
    assert _same_adapter(finished_run, copied)
    assert [line["step"] for line in read_metrics(copied)] == [1, 2, 3, 4]
    assert read_parts(copied).to_pylist() == read_parts(finished_run).to_pylist()
    assert read_alarms(copied) == read_alarms(finished_run)


def test_first_checkpoint_torn_means_from_the_start(copied: Path) -> None:
    for step in (2, 4):
        (copied / f"checkpoint-{step}" / "rng_state.pth").write_bytes(b"")
    assert last_checkpoint(copied) is None
    tinyrun.tiny_run(copied, 4)
    assert last_checkpoint(copied) == copied / "checkpoint-4"


def test_a_memory_that_lost_writes_is_told(copied: Path) -> None:
    shutil.rmtree(copied / "memory")
    with pytest.raises(ResumeError, match=r"stands at position 0, the checkpoint was written at \d+"):
        tinyrun.tiny_run(copied, 4)


def _run_with_small_files(folder: Path, steps: int, most: int) -> None:
    """Train in a process that may not write more than ``most`` bytes to one file, as on a full disk."""
    config = tinyrun.tiny_config(folder, steps)
    tokenizer = tinyrun.tiny_tokenizer()
    session, policy = tinyrun.tiny_session(config, tokenizer), (tinyrun.tiny_model(tokenizer), tokenizer)
    small = _Small(4, most)
    try:
        run(config, policy=policy, session=session, callbacks=[small])
    except DiskFullError as error:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        (folder / "said.txt").write_text(str(error))


class _Small(tinyrun.TrainerCallback):
    """Sets the limit when a step is committed, before its checkpoint is written."""

    def __init__(self, step: int, most: int) -> None:
        self._step, self._most = step, most

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Set it, if it is time."""
        if state.global_step == self._step:
            resource.setrlimit(resource.RLIMIT_FSIZE, (self._most, resource.RLIM_INFINITY))


def test_full_disk_is_told_and_the_older_checkpoint_is_whole(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tinyrun"])  # the heavy libraries, loaded once
    process = context.Process(target=_run_with_small_files, args=(folder, 4, 30_000))
    process.start()
    process.join()
    assert process.exitcode == 0
    said = (folder / "said.txt").read_text()
    assert "the disk or a quota is full" in said
    assert f"{folder / 'checkpoint-2'} is whole: make room and go on with --resume" in said
    assert last_checkpoint(folder) == folder / "checkpoint-2"


def test_full_disks_in_the_words_of_libraries(tmp_path: Path) -> None:
    for error in (
        OSError(errno.ENOSPC, "No space left on device"),
        sqlite3.OperationalError("database or disk is full"),
        RuntimeError("[enforce fail at inline_container.cc:668] . PytorchStreamWriter failed writing file data/3"),
    ):
        assert is_full(error)
        with pytest.raises(DiskFullError, match="no whole checkpoint yet"), explained(tmp_path):
            raise ValueError("while saving") from error
    assert not is_full(OSError(errno.EACCES, "Permission denied"))
    with pytest.raises(KeyError), explained(tmp_path):
        raise KeyError("other")
