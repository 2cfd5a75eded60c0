"""One rank that holds half of a policy (FSDP2 on CPU, gloo) and merges and saves it."""

from __future__ import annotations

import os
from pathlib import Path

import torch
import torch.distributed as dist
from families import family_model, with_adapter
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

from spade_train.lora.export import save_adapter, save_merged
from spade_train.lora.merge import merged_weights


def merge_rank(folder: Path, rank: int, port: int) -> None:
    """Compare the merged weights of a sharded policy with those of a whole one; save both."""
    place = {"RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "localhost", "MASTER_PORT": port}
    os.environ.update({name: str(value) for name, value in place.items()})
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (2,))
    for family, targets in (("qwen3", "auto"), ("qwen3_moe", "attention,experts")):
        policy = with_adapter(family_model(family, torch.bfloat16), targets)
        expected = {name: value.clone() for name, value in merged_weights(policy, everything=True)}
        for layer in policy.get_base_model().model.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(policy, mesh=mesh)
        assert all(isinstance(parameter, DTensor) for parameter in policy.parameters())
        before = {name: parameter.full_tensor().clone() for name, parameter in policy.named_parameters()}
        for _ in range(3):
            found = dict(merged_weights(policy, everything=True))
        assert found.keys() == expected.keys()
        wrong = [name for name in expected if not torch.equal(found[name], expected[name])]
        assert not wrong, wrong
        after = {name: parameter.full_tensor() for name, parameter in policy.named_parameters()}
        assert all(torch.equal(after[name], value) for name, value in before.items())
        save_adapter(policy, folder / family / "adapter", write=rank == 0)
        save_merged(policy, folder / family / "merged", write=rank == 0)
    dist.barrier()
    dist.destroy_process_group()
