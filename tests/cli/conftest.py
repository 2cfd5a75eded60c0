"""A program in a file and a memory that holds it."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_programs import SUM


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A sound program in a file."""
    path = tmp_path / "sum_env.py"
    path.write_text(SUM)
    return path


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    """A memory that holds the sound program, played a few times."""
    from spade_envs.memory import Memory
    from spade_envs.record import EnvironmentRecord

    folder = tmp_path / "memory"
    record = EnvironmentRecord.create(SUM, "SumEnv", skill="Arithmetic [bold]", generator="human", proven=True)
    with Memory.open(folder) as store:
        store.add(record)
        store.record_plays(record.id, [0.0, 1.0, 1.0, 0.0], hinted=False)
        store.record_plays(record.id, [1.0, 1.0], hinted=True)
    return folder
