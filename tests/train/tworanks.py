"""One rank of a two-rank run on CPU (gloo); started by ``torch.distributed.run``. Writes what it ended with."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from tinyrun import tiny_training

import spade_train.trl_adapter as adapter

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    adapter.is_collective = lambda trainer: True  # as with a vLLM server or FSDP: equal calls on every rank
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
        weights = {name: weight for name, weight in trainer.model.named_parameters() if "lora" in name}
        rank = trainer.args.process_index
        save_file(
            {name: weight.detach().contiguous() for name, weight in weights.items()}, folder / f"rank{rank}.safetensors"
        )
    notes = {"calls": calls, "written": written, "documents": documents}
    (folder / f"rank{rank}.json").write_text(json.dumps(notes))
