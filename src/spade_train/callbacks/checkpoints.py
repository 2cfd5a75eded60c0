"""Checkpoints that are whole or not there, and a memory that goes back with them."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback

from spade_train.callbacks.files import sync_folder, write_json
from spade_train.curriculum import ResumeError

if TYPE_CHECKING:
    from spade_train.selfplay import SelfPlay

STATE_FILE = "spade_state.json"
START_FILE = "spade_start.json"


def checkpoint_step(path: Path) -> int:
    """Return the step of a checkpoint folder, -1 if it is none."""
    number = path.name.rsplit("-", 1)[-1]
    return int(number) if number.isdecimal() else -1


def damage(checkpoint: Path) -> str:
    """Say what is wrong with a checkpoint; "" if it is whole.

    The state file is written last and holds length and BLAKE2b digest of every other file, so a checkpoint that a
    kill cut short, a file that was truncated later and a disk that lost blocks are all found.
    """
    try:
        state = json.loads((checkpoint / STATE_FILE).read_text(encoding="utf-8"))
        files = state.get("files", {}).items()
    except FileNotFoundError:
        return f"{checkpoint / STATE_FILE} is missing: the checkpoint is not whole, or not of a self-play run"
    except (ValueError, AttributeError):
        return f"{checkpoint / STATE_FILE} is not whole"
    for name, (size, digest) in files:
        path = checkpoint / name
        if not path.is_file():
            return f"{path} is missing"
        if (found := path.stat().st_size) != size:
            return f"{path} has {found} bytes, {size} were written"
        if _digest(path) != digest:
            return f"{path} is not what was written: its digest differs"
    return ""


def last_checkpoint(folder: str | Path) -> Path | None:
    """Return the newest whole checkpoint in ``folder``, or None; see :func:`damage`."""
    found = [path for path in Path(folder).glob("checkpoint-*") if checkpoint_step(path) >= 0]
    newest_first = sorted(found, key=checkpoint_step, reverse=True)
    return next((path for path in newest_first if not damage(path)), None)


def seal(checkpoint: Path, state: Mapping[str, Any]) -> None:
    """Complete a checkpoint: bring every file to the disk, then write the state file with their digests."""
    files = {}
    for path in sorted(checkpoint.rglob("*")):
        if path.is_file() and path.name != STATE_FILE:
            with path.open("rb") as file:
                os.fsync(file.fileno())
            files[path.relative_to(checkpoint).as_posix()] = [path.stat().st_size, _digest(path)]
    for inner in {checkpoint, *(path.parent for path in checkpoint.rglob("*"))}:
        sync_folder(inner)
    write_json(checkpoint / STATE_FILE, {**state, "files": files})
    sync_folder(checkpoint.parent)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


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
            checkpoint = folder / f"checkpoint-{state.global_step}"
            if why := damage(checkpoint):
                raise ResumeError(
                    f"{why}. Resume from {last_checkpoint(folder) or 'the start: there is no whole checkpoint'}."
                )
            path = checkpoint / STATE_FILE
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
            wait()
        self._session.load_state_dict(json.loads(path.read_text(encoding="utf-8")))

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Commit the step."""
        self._session.commit()

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Complete the checkpoint that the trainer has just written, when every rank has written its part."""
        wait()
        if args.process_index == 0:
            folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
            seal(folder, {"step": state.global_step, **self._session.state_dict(state.global_step)})
        wait()  # nobody looks for it before it is whole


def wait() -> None:
    """Wait for all ranks."""
    from accelerate import PartialState

    PartialState().wait_for_everyone()
