"""A policy that is spread over two ranks is merged and saved as if it were whole."""

from __future__ import annotations

import multiprocessing
import socket
from pathlib import Path

import pytest
import shardedranks
import torch
from families import family_model, with_adapter
from safetensors.torch import load_file

from spade_train.lora.export import save_adapter
from spade_train.lora.merge import merged_weights
from spade_train.lora.serving import check_folder


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two ranks wrote together."""
    folder = tmp_path_factory.mktemp("sharded")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tinyrun"])
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    ranks = [context.Process(target=shardedranks.merge_rank, args=(folder, rank, port)) for rank in range(2)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
    assert [rank.exitcode for rank in ranks] == [0, 0]
    return folder


@pytest.mark.parametrize(("family", "targets"), [("qwen3", "auto"), ("qwen3_moe", "attention,experts")])
def test_sharded_policy_leaves_what_a_whole_one_does(saved: Path, tmp_path: Path, family: str, targets: str) -> None:
    policy = with_adapter(family_model(family, torch.bfloat16), targets)
    save_adapter(policy, tmp_path / "adapter")
    whole, together = (
        load_file(folder / "adapter_model.safetensors") for folder in (tmp_path / "adapter", saved / family / "adapter")
    )
    assert whole.keys() == together.keys()
    assert all(torch.equal(together[name], value) for name, value in whole.items())
    if family == "qwen3":
        check_folder(saved / family / "adapter", max_rank=8)
    expected = dict(merged_weights(policy, everything=True))
    merged = load_file(saved / family / "merged" / "model.safetensors")
    assert merged.keys() == expected.keys()
    assert all(torch.equal(merged[name], value) for name, value in expected.items())
