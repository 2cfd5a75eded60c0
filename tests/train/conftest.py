"""Shared fixtures of the trainer's tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # tiny matrices: threads only wait for each other
torch.set_num_threads(1)
sys.path.insert(0, str(Path(__file__).parent))

from spade_envs.sandbox import Sandbox  # noqa: E402  # after what its libraries read at import
from spade_train.tokens import ChatTokens  # noqa: E402

PLACE = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@pytest.fixture(autouse=True)
def launched_by_nobody() -> Iterator[None]:
    """Take back what libraries say to later processes: TRL names itself rank 0 of 1 where vLLM runs in its process."""
    before = {name: os.environ.get(name) for name in PLACE}
    yield
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    """The tiny tokenizer, trained once."""
    from tiny import tiny_tokenizer

    return tiny_tokenizer()


@pytest.fixture(scope="session")
def tokens(tokenizer: Any) -> ChatTokens:
    """Conversations as ids of the tiny tokenizer."""
    return ChatTokens(tokenizer)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """A sandbox with the limits of a run, which a busy machine does not reach."""
    with Sandbox(minimum_isolation="static") as made:
        yield made


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny run of four steps that nobody disturbed: checkpoints 2 and 4. Not to be written to."""
    from tinyrun import tiny_run

    folder = tmp_path_factory.mktemp("finished") / "run"
    tiny_run(folder, 4)
    return folder
