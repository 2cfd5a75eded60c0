"""The windows of all ranks in checkpoints: which environments are played, and which of the designer's rows wait."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from spade_train.callbacks.files import write_json
from spade_train.curriculum import ResumeError
from spade_train.window import Window

RANK_FILE = "spade_window_{rank}.json"


class WindowCallback(TrainerCallback):  # type: ignore[misc]
    """Writes each rank's window into a checkpoint before it is sealed, and reads it back.

    It must come before the callback that seals checkpoints: every rank writes its file, then all wait for each other.
    """

    def __init__(self, window: Window) -> None:
        self._window = window

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Go back to the window of the checkpoint that the trainer resumes from."""
        if state.global_step == 0:
            return
        path = _path(args, state)
        if args.regenerate_every > 1 and _path(args, state, args.world_size).is_file():
            raise ResumeError(
                f"{path.parent} holds windows of more ranks than the {args.world_size} of now: their programs would "
                f"never be trained. Resume with as many processes as the run had."
            )
        if path.is_file():
            self._window.load_state_dict(_read(path))
        elif args.regenerate_every > 1:
            raise ResumeError(
                f"{path} is missing: the checkpoint has no window of rank {args.process_index}. Resume with as many "
                f"processes as the run had, from a checkpoint of a run with regenerate_every > 1."
            )
        if (first := _path(args, state, 0)).is_file():  # averages are those of all ranks; a new rank has no others
            self._window.load_averages(_read(first))

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Write this rank's window."""
        write_json(_path(args, state), self._window.state_dict())


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _path(args: Any, state: Any, rank: int | None = None) -> Path:
    rank = args.process_index if rank is None else rank
    return Path(args.output_dir) / f"checkpoint-{state.global_step}" / RANK_FILE.format(rank=rank)
