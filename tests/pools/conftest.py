"""A memory to export."""

from __future__ import annotations

from pathlib import Path

import pytest
from pool_programs import make_memory

from spade_envs.sandbox import Sandbox


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory, sandbox: Sandbox) -> Path:
    """The folder of a memory of four records, one archived. Not to be written to."""
    return make_memory(tmp_path_factory.mktemp("pools") / "filled", sandbox)
