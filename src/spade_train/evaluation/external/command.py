"""Running an evaluator's commands: their log in a file, progress while they run, an end with this process."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from spade_train.evaluation.protocol import EvaluationError

_ENDS_WITH_PARENT = (
    "import ctypes, os, sys\n"
    "try: ctypes.CDLL(None).prctl(1, 9)\n"  # PR_SET_PDEATHSIG, SIGKILL
    "except Exception: pass\n"
    "os.execv(sys.argv[1], sys.argv[1:])\n"
)
"""Run before the command: it is to end with the evaluation, however that ends (Linux)."""
_LAST_BYTES = 4096


def run_logged(
    what: str,
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    on_tick: Callable[[], None] | None = None,
    log_name: str = "log.txt",
) -> None:
    """Run ``command`` in ``folder``; its output is appended to the log there.

    Args:
        what: the evaluator's name, for the error.
        command: with its interpreter.
        folder: to run in.
        environment: all of its environment variables.
        on_tick: called about once a second.
        log_name: of the log.

    Raises:
        EvaluationError: if it fails; the end of the log is in the message.
    """
    log_path = folder / log_name
    with log_path.open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", _ENDS_WITH_PARENT, *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=dict(environment),
            cwd=folder,
        )
        try:
            while process.poll() is None:
                if on_tick is not None:
                    on_tick()
                time.sleep(0.5)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    if process.returncode:
        said = log_path.read_text(encoding="utf-8", errors="replace").strip()[-800:]
        raise EvaluationError(f"{what} failed; its log is {log_path}. It said: {said}")


def last_said(folder: Path, pattern: re.Pattern[bytes], log_name: str = "log.txt") -> str:
    """Return the last match of ``pattern``'s group at the end of a log, for the progress; "" if there is none."""
    try:
        with (folder / log_name).open("rb") as log:
            log.seek(max(0, log.seek(0, 2) - _LAST_BYTES))
            found = pattern.findall(log.read())
    except OSError:
        return ""
    return found[-1].decode("utf-8", "replace") if found else ""
