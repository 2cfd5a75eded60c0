"""Files derived from large corpora (indices, unpacked copies), kept in the user's cache folder."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spade_envs.corpus.document import logger

CACHE_FROM = 8 << 20
"""Bytes from which a file's index and unpacked copy are kept; smaller files are read in less than a second."""
_UNUSED = 30 * 86_400  # seconds after which an entry that nobody used is removed
_FORMAT = 1  # of the derived files


def default_folder() -> Path:
    """Return ``corpora`` in the platform's cache folder for spade."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("spade")) / "corpora"


def place_for(path: Path, what: str, folder: Path | None) -> Path | None:
    """Return where the file derived from ``path`` belongs, None if it is not worth it or there is no folder.

    The name follows from the path, size and time of change of the file, and from ``what`` is derived; its suffix is
    the last word of ``what``.
    """
    status = path.stat()
    if folder is None and status.st_size < CACHE_FROM:
        return None
    return keyed_place(f"{path.resolve()}\0{status.st_size}\0{status.st_mtime_ns}", what, folder)


def keyed_place(key: str, what: str, folder: Path | None) -> Path | None:
    """Return where the file under ``key`` belongs; None if the folder cannot be used. Marks the file as used."""
    folder = default_folder() if folder is None else folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError("not writable")
    except OSError as error:
        logger.warning("no cache of corpora in %s: %s", folder, error)
        return None
    digest = hashlib.blake2b(f"{_FORMAT}\0{key}\0{what}".encode("utf-8", "surrogatepass"), digest_size=16)
    target = folder / f"{digest.hexdigest()}.{what.split()[-1]}"
    with contextlib.suppress(OSError):
        # The time of change stays: it may be part of another key.
        os.utime(target, ns=(time.time_ns(), target.stat().st_mtime_ns))
    return target


@contextmanager
def written(target: Path) -> Iterator[Path]:
    """Give a temporary path that becomes ``target`` when the block ends well, so that no one sees half a file."""
    _prune(target.parent)
    handle, name = tempfile.mkstemp(prefix=target.name + ".", suffix=".tmp", dir=target.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def _prune(folder: Path) -> None:
    """Remove what nobody used for a month, and what a killed process left."""
    now = time.time()
    for file in folder.iterdir():
        with contextlib.suppress(OSError):
            limit = 86_400 if file.suffix == ".tmp" else _UNUSED
            if now - file.stat().st_atime > limit:
                file.unlink()
