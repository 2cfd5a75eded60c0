"""One rank of a run with windows on CPU (gloo). Writes what each update used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ranks_run import place
from safetensors.torch import save_file
from tinyrun import tiny_training

import spade_train.trl_adapter as adapter


def train_windows(folder: Path, rank: int, world: int, port: int) -> None:
    """Train four steps in windows of two, every generation collective."""
    place(rank, world, port)
    adapter.is_collective = lambda trainer: True
    steps: list[dict[str, Any]] = []
    with tiny_training(folder, 4, documents=1, regenerate_every=2) as training:
        trainer, session = training.trainer, training.session
        generate = trainer._generate_and_score_completions

        def watched(inputs: Any) -> Any:
            output = generate(inputs)
            rows = [row.to_dict() for row in session.batch]
            steps.append({"rows": rows, "used": output["advantages"].tolist()})
            return output

        trainer._generate_and_score_completions = watched
        trainer.train()
        weights = {
            name: weight.detach().contiguous() for name, weight in trainer.model.named_parameters() if "lora" in name
        }
        save_file(weights, folder / f"rank{rank}.safetensors")
    (folder / f"rank{rank}.json").write_text(json.dumps(steps))
