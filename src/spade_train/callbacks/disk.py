"""A disk that is full, told so that one knows what to do."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spade_train.callbacks.checkpoints import last_checkpoint

_NUMBERS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_WORDS = ("no space left", "disk is full", "disk quota", "file too large", "file write failed", "inline_container")
"""As OSError, SQLite, safetensors and torch.save say it."""


class DiskFullError(RuntimeError):
    """The run cannot write any more; what it wrote before is whole."""


@contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Turn the many ways in which libraries report a full disk into one error.

    Raises:
        DiskFullError: in place of an error that means it.
    """
    try:
        yield
    except Exception as error:
        if not is_full(error):
            raise
        whole = last_checkpoint(folder)
        free = shutil.disk_usage(folder).free / 1e6 if folder.exists() else 0.0
        then = f"{whole} is whole: make room and go on with --resume" if whole else "there is no whole checkpoint yet"
        raise DiskFullError(
            f"{folder} cannot be written: the disk or a quota is full ({free:.0f} MB free); {then}. The error was: "
            f"{type(error).__name__}: {error}"
        ) from error


def is_full(error: BaseException) -> bool:
    """Whether an error, or what caused it, says that a disk is full."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OSError) and seen.errno in _NUMBERS:
            return True
        if any(word in str(seen).lower() for word in _WORDS):
            return True
        seen = seen.__cause__ or seen.__context__
    return False
