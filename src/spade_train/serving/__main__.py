"""``python -m spade_train.serving``: the command ``spade serve`` without the others."""

from __future__ import annotations

import contextlib
import signal
import sys

import typer

from spade_envs.cli.console import fail, plainly
from spade_envs.models.base import ModelError
from spade_train.serving.cli import serve


def _end_with_parent() -> None:
    """Whoever started this needs it; a server that outlives a killed evaluation would hold memory for nobody."""
    if sys.platform.startswith("linux"):
        from spade_envs.sandbox.libc import libc

        with contextlib.suppress(OSError, AttributeError):
            libc().prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG, see prctl(2)


if __name__ == "__main__":
    _end_with_parent()
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(serve)
    try:
        app()
    except (ModelError, ValueError, OSError) as error:
        fail(plainly(error))
