"""One rank of a two-rank run on CPU (gloo). Writes what it ended with."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tinyrun import tiny_training

import spade_train.trl_adapter as adapter


def train_rank(folder: Path, rank: int, port: int) -> None:
    """Train as ``rank`` of two, every generation collective, as with a vLLM server or FSDP."""
    place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "localhost", "MASTER_PORT": port}
    os.environ.update({name: str(value) for name, value in place.items()})
    torch.set_num_threads(1)
    adapter.is_collective = lambda trainer: True
    calls: list[int] = []
    written: list[str] = []
    documents: list[str] = []
    with tiny_training(folder, 3, documents=1) as training:
        trainer, session = training.trainer, training.session
        generate, run = trainer._generate_single_turn, session.rollout.run

        def counted(prompt_ids: Any, images: Any, multimodal_fields: Any, num_generations: int) -> Any:
            calls.append(len(prompt_ids))
            return generate(prompt_ids, images, multimodal_fields, num_generations)

        def watched(plan: Any, sampler: Any) -> Any:
            cycle = run(plan, sampler)
            documents.extend(design.document.id for design in plan.designs)
            written.extend(one.record.id for one in cycle.played if one.fresh)
            return cycle

        trainer._generate_single_turn, session.rollout.run = counted, watched
        trainer.train()
        weights = {
            name: weight.detach().contiguous() for name, weight in trainer.model.named_parameters() if "lora" in name
        }
        save_file(weights, folder / f"rank{rank}.safetensors")
    notes = {"calls": calls, "written": written, "documents": documents}
    (folder / f"rank{rank}.json").write_text(json.dumps(notes))
