from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from spade_envs.corpus import Corpus
from spade_envs.memory import HashedTokenEmbedder, Memory
from spade_envs.sandbox import Sandbox


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "memory", embedder=HashedTokenEmbedder()) as memory:
        yield memory


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    rows = [{"id": f"doc{number}", "text": f"Document {number} on number theory."} for number in range(11)]
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Corpus.open(path)
