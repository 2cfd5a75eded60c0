"""The ``spade`` command line."""

from __future__ import annotations


def main() -> None:
    """Entry point of the console script."""
    from spade_envs.cli.app import run

    run()
