"""Memory of a tree of processes, shared pages counted once."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def tree(root: int) -> list[int]:
    """Return ``root`` and all its descendants."""
    parents: dict[int, int] = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            parents[int(entry)] = int(Path(f"/proc/{entry}/stat").read_text().rpartition(") ")[2].split()[1])
        except OSError:  # it has just ended
            continue
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def memory_of(pids: Iterable[int]) -> float:
    """Return the proportional set size of the processes in MB: a page shared by n processes counts 1/n for each."""
    total = 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024
