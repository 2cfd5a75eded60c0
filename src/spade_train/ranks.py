"""What the ranks of one run owe each other: they stop together, and they share the cores of their node."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

_FAILED = "failed-rank-{}.txt"
_POLL_SECONDS = 0.5
_GRACE_SECONDS = 5.0


class RankError(RuntimeError):
    """Another rank stopped; the message holds its reason."""


def sandbox_workers(asked: int, programs: int) -> int:
    """Return how many sandbox workers one rank may keep alive.

    A worker sleeps while the policy thinks, so every open program keeps one (to stop it costs a replay of its
    episodes); beyond that, cores that the ranks of this node leave each other are used for validation.

    Args:
        asked: the setting; 0 sizes them to the machine.
        programs: programs that are open at once.
    """
    if asked:
        return asked
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, programs, cores // ranks_of_this_node())


def ranks_of_this_node() -> int:
    """Return how many ranks run on this machine, as torchrun and accelerate say it; 1 without them."""
    return max(1, int(os.environ.get("LOCAL_WORLD_SIZE", "1")))


@contextlib.contextmanager
def stop_together(
    folder: str | Path, rank: int, world: int, *, leave: Callable[[int], object] = os._exit
) -> Iterator[None]:
    """End this process when another rank of the run failed, with that rank's reason.

    A rank that fails leaves its reason in ``folder``, which all ranks share. The others may be inside a collective
    that will never end (NCCL does not notice a lost peer), so a thread looks for such files, prints the reason and,
    if the main thread has not come out by itself after some seconds, ends the process with status 1. What a step has
    not committed is lost; the last checkpoint is whole.

    Args:
        folder: the run's folder.
        rank: of this process.
        world: number of processes; nothing happens if it is 1.
        leave: ends the process.
    """
    if world == 1:
        yield
        return
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    mine = folder / _FAILED.format(rank)
    mine.unlink(missing_ok=True)
    others = [folder / _FAILED.format(other) for other in range(world) if other != rank]
    seen, done = {path: _written(path) for path in others}, threading.Event()
    watcher = threading.Thread(
        target=_watch, args=(seen, f"rank {rank} of {world}", done, leave), name="spade-ranks", daemon=True
    )
    watcher.start()
    try:
        yield
    except BaseException as error:
        if (reason := _failure(seen)) is not None:
            raise RankError(reason) from error  # what came up here only follows from it
        if not isinstance(error, SystemExit) or error.code:
            ours = type(error).__module__.split(".")[0] in ("spade_envs", "spade_train")  # written for people
            reason = str(error) if ours else f"{type(error).__name__}: {error}"
            _say(f"rank {rank} of {world} stopped: {reason}")
            temporary = mine.with_suffix(".tmp")
            temporary.write_text(reason, encoding="utf-8")
            temporary.replace(mine)
        raise
    finally:
        done.set()


def _watch(seen: Mapping[Path, int | None], name: str, done: threading.Event, leave: Callable[[int], object]) -> None:
    while not done.wait(_POLL_SECONDS):
        if (reason := _failure(seen)) is not None:
            _say(f"{name} stops because {reason}")
            if not done.wait(_GRACE_SECONDS):
                leave(1)
            return


def _failure(seen: Mapping[Path, int | None]) -> str | None:
    """Return the reason that another rank has left; files that were there at the start are of an earlier run."""
    for path, before in seen.items():
        with contextlib.suppress(OSError):  # it may vanish: its rank removes an old one when it starts
            if (written := _written(path)) is not None and written != before:
                return f"rank {path.stem.rsplit('-', 1)[1]} stopped: {path.read_text(encoding='utf-8')}"
    return None


def _written(path: Path) -> int | None:
    """Return when ``path`` was written, in nanoseconds of its file system's clock."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # whatever is done with logs, this must be seen
