"""What a session in one's own script takes over from its configuration."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer

from spade_envs.models.transformers import NANO_FOLDER
from spade_train.config import SpadeConfig
from spade_train.selfplay import SelfPlay


@pytest.mark.parametrize("threads", [0, 3])
def test_a_session_sets_the_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    told: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", told.append)
    config = SpadeConfig(output_dir=str(tmp_path / "run"), max_steps=1, threads=threads, use_cpu=True, bf16=False)
    with SelfPlay.from_config(config, AutoTokenizer.from_pretrained(NANO_FOLDER)):
        assert told == [threads] * bool(threads)
