"""Callbacks of a self-play run: memory and checkpoints, metrics, transcripts."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback

from spade_train.curriculum import ResumeError

if TYPE_CHECKING:
    from spade_train.selfplay import SelfPlay

STATE_FILE = "spade_state.json"
START_FILE = "spade_start.json"
METRICS_FILE = "metrics.jsonl"
TRANSCRIPTS_FILE = "transcripts.jsonl"


def last_checkpoint(folder: str | Path) -> Path | None:
    """Return the newest complete checkpoint in ``folder``, or None.

    The state file is written last, so a checkpoint that has it is whole; one that a kill cut short is passed over.
    """
    found = [path for path in Path(folder).glob("checkpoint-*") if (path / STATE_FILE).is_file()]
    return max(found, key=lambda path: int(path.name.rsplit("-", 1)[1]), default=None)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write JSON so that a reader sees the old file or the new one, even after a crash."""
    temporary = path.with_name(f"{path.name}.tmp")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


class MemoryCallback(TrainerCallback):  # type: ignore[misc]
    """Writes each step's environments and plays to the memory, and keeps checkpoints and memory in step.

    A checkpoint holds the memory's position; on resume what the run wrote later is taken back, so the resumed run
    sees the memory as it was.
    """

    def __init__(self, session: SelfPlay) -> None:
        self._session = session

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Start a new run, or go back to the checkpoint that the trainer resumes from."""
        folder = Path(args.output_dir)
        if state.global_step > 0:
            path = folder / f"checkpoint-{state.global_step}" / STATE_FILE
            if not path.is_file():
                raise ResumeError(
                    f"{path} is missing: the checkpoint is not whole, or not of a self-play run. Resume from "
                    f"{last_checkpoint(folder) or 'the start: there is no whole checkpoint'}."
                )
        else:
            path = folder / START_FILE
            if (whole := last_checkpoint(folder)) is not None:
                raise ResumeError(
                    f"{folder} holds a run already: resume it (--resume; in a script "
                    f"resume_from_checkpoint={str(whole)!r}), or use another output_dir"
                )
            if not path.is_file() and args.process_index == 0:
                folder.mkdir(parents=True, exist_ok=True)
                write_json(path, self._session.state_dict())
            _wait()
        self._session.load_state_dict(json.loads(path.read_text(encoding="utf-8")))
        if args.process_index == 0:
            for name in (METRICS_FILE, TRANSCRIPTS_FILE):
                _keep_steps(folder / name, state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Commit the step."""
        self._session.commit()

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Complete the checkpoint that the trainer has just written."""
        if args.process_index == 0:
            folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
            write_json(folder / STATE_FILE, {"step": state.global_step, **self._session.state_dict()})


class MetricsCallback(TrainerCallback):  # type: ignore[misc]
    """Appends one line for each step to ``metrics.jsonl``."""

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **_: Any) -> None:
        """Write the step's metrics; the trainer's summary at the end is not one."""
        if args.process_index != 0 or not logs or "reward" not in logs:
            return
        line: dict[str, Any] = {"step": state.global_step}
        for name, value in logs.items():
            number = value if isinstance(value, int) else _number(value)
            if number is not None:
                line[name] = number
        if "step_time" in line and "seconds/rollout" in line:
            line["seconds/update"] = round(max(0.0, line["step_time"] - line["seconds/rollout"]), 4)
        _append(Path(args.output_dir) / METRICS_FILE, [line])


class TranscriptsCallback(TrainerCallback):  # type: ignore[misc]
    """Appends what was written and played to ``transcripts.jsonl``."""

    def __init__(self, session: SelfPlay) -> None:
        self._session = session

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Write the transcripts of the step that has just been committed."""
        if args.process_index == 0:
            _append(Path(args.output_dir) / TRANSCRIPTS_FILE, self._session.transcripts)
            self._session.transcripts = []


def read_metrics(folder: str | Path) -> list[dict[str, Any]]:
    """Return the lines of a run's ``metrics.jsonl``, oldest first."""
    path = Path(folder) / METRICS_FILE
    return list(_whole_lines(path)) if path.is_file() else []


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _append(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def _whole_lines(path: Path) -> Iterable[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.endswith("\n"):  # a kill may cut the last one
                yield json.loads(line)


def _keep_steps(path: Path, step: int) -> None:
    """Drop the lines of steps after ``step``: they will be run again."""
    if not path.is_file():
        return
    kept = [line for line in _whole_lines(path) if line["step"] <= step]
    temporary = path.with_name(f"{path.name}.tmp")
    temporary.unlink(missing_ok=True)
    _append(temporary, kept)
    if temporary.exists():
        temporary.replace(path)


def _wait() -> None:
    from accelerate import PartialState

    PartialState().wait_for_everyone()
