"""Virtual environments of evaluators whose requirements do not go with ours: made once, in the user's cache folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from spade_train.evaluation.protocol import EvaluationError

_MARKER = "complete"
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "SSL_CERT_FILE", "SYSTEMROOT", "HTTP_PROXY", "HTTPS_PROXY",
         "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")  # fmt: skip


def environments_folder() -> Path:
    """Where they are kept."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("spade")) / "evaluators"


def find_environment(name: str) -> Path | None:
    """Return the interpreter of a complete environment, None if there is none yet."""
    folder = environments_folder() / _safe(name)
    return _interpreter(folder) if (folder / _MARKER).is_file() else None


def make_environment(name: str, packages: Sequence[str], interpreter: str | None = None) -> Path:
    """Return the interpreter of an environment with ``packages``, making it the first time.

    Args:
        name: of the folder; another name is another environment.
        packages: what pip installs, as it takes them.
        interpreter: the Python to make it with; by default the one that runs.

    Raises:
        EvaluationError: if it cannot be made; what pip said is in the message.
    """
    if (found := find_environment(name)) is not None:
        return found
    folder = environments_folder() / _safe(name)
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Its paths are written into it, so it is made in its place; a half-made one is removed first.
    shutil.rmtree(folder, ignore_errors=True)
    try:
        _run([interpreter or sys.executable, "-m", "venv", str(folder)], name)
        pip = [str(_interpreter(folder)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _run([*pip, *packages], name, pip=True)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    (folder / _MARKER).touch()
    return _interpreter(folder)


def evaluator_environment(**values: str) -> dict[str, str]:
    """Return the environment variables of an evaluator: what programs need to run, and ``values``; no secrets."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    # Endpoints of this machine are never behind a proxy.
    outside = [part for name in ("no_proxy", "NO_PROXY") for part in kept.get(name, "").split(",") if part]
    direct = ",".join(dict.fromkeys([*outside, "127.0.0.1", "localhost"]))
    # Unbuffered, so that a log says how far its evaluator is.
    return kept | {"no_proxy": direct, "NO_PROXY": direct, "PYTHONUNBUFFERED": "1"} | values


def _run(command: list[str], name: str, *, pip: bool = False) -> None:
    environment = None if pip else evaluator_environment()  # pip reads its configuration from the user's variables
    with tempfile.TemporaryFile() as log:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
        if done.returncode == 0:
            return
        log.seek(0)
        said = log.read().decode("utf-8", "replace").strip()[-800:]
    raise EvaluationError(f"the environment of {name} cannot be made ({' '.join(command[:4])} …). It said: {said}")


def _interpreter(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def _safe(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9.=-]+", "-", name)
