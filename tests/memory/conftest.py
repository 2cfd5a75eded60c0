from collections.abc import Iterator
from pathlib import Path

import pytest

from spade_envs.memory import HashedTokenEmbedder, Memory


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "pool", embedder=HashedTokenEmbedder()) as opened:
        yield opened
