"""Checkpoint bookkeeping on disk."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from spade_train.callbacks import (
    METRICS_FILE,
    START_FILE,
    STATE_FILE,
    MemoryCallback,
    MetricsCallback,
    last_checkpoint,
    read_metrics,
    write_json,
)
from spade_train.curriculum import ResumeError


class _Session:
    """Remembers what it was told to load."""

    def __init__(self) -> None:
        self.loaded: list[dict[str, int]] = []

    def state_dict(self, step: int = 0) -> dict[str, int]:
        return {"position": 7 + step}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.loaded.append(state)


def _checkpoint(folder: Path, step: int, *, whole: bool = True) -> Path:
    path = folder / f"checkpoint-{step}"
    path.mkdir(parents=True)
    if whole:
        write_json(path / STATE_FILE, {"step": step})
    return path


def _begin(folder: Path, step: int) -> _Session:
    session = _Session()
    arguments = SimpleNamespace(output_dir=str(folder), process_index=0)
    state = SimpleNamespace(global_step=step)
    MemoryCallback(session).on_train_begin(arguments, state, None)  # type: ignore[arg-type]
    MetricsCallback().on_train_begin(arguments, state, None)
    return session


def test_newest_whole_checkpoint(tmp_path: Path) -> None:
    assert last_checkpoint(tmp_path) is None
    _checkpoint(tmp_path, 2)
    _checkpoint(tmp_path, 10)
    _checkpoint(tmp_path, 12, whole=False)
    assert last_checkpoint(tmp_path) == tmp_path / "checkpoint-10"


def test_interrupted_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    write_json(path, {"a": 1})
    with pytest.raises(TypeError):
        write_json(path, {"a": object()})
    assert json.loads(path.read_text()) == {"a": 1}


def test_resume_from_a_cut_checkpoint_names_the_whole_one(tmp_path: Path) -> None:
    _checkpoint(tmp_path, 2)
    _checkpoint(tmp_path, 4, whole=False)
    with pytest.raises(ResumeError, match=r"not whole.*checkpoint-2"):
        _begin(tmp_path, 4)


def test_new_run_notes_where_the_memory_stood_and_a_restart_goes_back(tmp_path: Path) -> None:
    assert _begin(tmp_path / "run", 0).loaded == [{"position": 7}]
    assert (tmp_path / "run" / START_FILE).is_file()
    write_json(tmp_path / "run" / START_FILE, {"position": 3})
    assert _begin(tmp_path / "run", 0).loaded == [{"position": 3}]


def test_resume_drops_the_lines_of_later_steps(tmp_path: Path) -> None:
    _checkpoint(tmp_path, 2)
    lines = [json.dumps({"step": step}) for step in (1, 2, 3)]
    (tmp_path / METRICS_FILE).write_text("\n".join(lines) + '\n{"step": 4, "lo')
    _begin(tmp_path, 2)
    assert [line["step"] for line in read_metrics(tmp_path)] == [1, 2]
    assert read_metrics(tmp_path / "none") == []


def test_metrics_are_finite_numbers_of_steps(tmp_path: Path) -> None:
    arguments = SimpleNamespace(output_dir=str(tmp_path), process_index=0)
    state = SimpleNamespace(global_step=3)
    callback = MetricsCallback()
    callback.on_log(arguments, state, None, {"train_runtime": 1.0})
    logs = {
        "reward": 0.5,
        "loss": "1e-2",
        "kl": float("nan"),
        "clip": None,
        "step_time": 3.0,
        "seconds/rollout": 1.0,
        "name": "x",
    }
    callback.on_log(arguments, state, None, logs)
    expected = {"step": 3, "reward": 0.5, "loss": 0.01, "step_time": 3.0, "seconds/rollout": 1.0, "seconds/update": 2.0}
    assert read_metrics(tmp_path) == [expected | {"not_finite": 1}]
