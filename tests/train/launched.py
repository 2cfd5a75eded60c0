"""Processes that a test starts and waits for."""

from __future__ import annotations

from typing import Any


def ended(*processes: Any) -> list[int]:
    """Start all of them, wait, and return their exit codes."""
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return [process.exitcode for process in processes]
