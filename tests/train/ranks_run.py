"""One rank of a run on CPU (gloo). Writes what it ended with."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import torch
from doubles import BROKEN, HashDesigner
from safetensors.torch import save_file
from tiny import tiny_model, tiny_tokenizer
from tinyrun import tiny_config, tiny_session, tiny_training

import spade_train.trl_adapter as adapter
from spade_envs.designer.attempt import Attempt
from spade_envs.memory import Memory
from spade_envs.record import EnvironmentRecord
from spade_train.recipe import run

FSDP = {
    "ACCELERATE_USE_FSDP": "true",
    "FSDP_VERSION": "2",
    "FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP",
    "FSDP_TRANSFORMER_CLS_TO_WRAP": "Qwen3DecoderLayer",
    "FSDP_RESHARD_AFTER_FORWARD": "true",
    "FSDP_STATE_DICT_TYPE": "FULL_STATE_DICT",
    "FSDP_CPU_RAM_EFFICIENT_LOADING": "true",
}


class PoorDesigner(HashDesigner):
    """Admits nothing, or only a program that fails in play, or whatever the hash says, by what ``mode`` is now."""

    mode = "rich"

    def admit(self, text: str, prompt: Any) -> Attempt:
        """Judge by mode."""
        if self.mode == "nothing":
            return Attempt(prompt.skill, "refused", raw=text, reason="syntax: no")
        if self.mode == "errors":
            source = BROKEN.format(name="X", letters="et", turns=3)
            found = EnvironmentRecord.create(source, "LetterXEnv", skill=prompt.skill)
            return Attempt(prompt.skill, "admitted", raw=text, source=source, record=found)
        return super().admit(text, prompt)


def place(rank: int, world: int, port: int, **more: str) -> None:
    """Say to torch and accelerate which rank this process is."""
    names = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "LOCAL_WORLD_SIZE": world}
    os.environ.update({name: str(value) for name, value in names.items()} | more)
    os.environ.update({"MASTER_ADDR": "localhost", "MASTER_PORT": str(port), "ACCELERATE_USE_CPU": "true"})
    torch.set_num_threads(1)


def train_rank(folder: Path, rank: int, world: int, port: int, modes: dict[int, list[str]]) -> None:
    """Train, every generation collective; ``modes`` says for each rank what its designer does in each cycle."""
    place(rank, world, port)
    adapter.is_collective = lambda trainer: True
    _train(folder, rank, world, modes.get(rank, []))


def train_sharded(folder: Path, rank: int, world: int, port: int, modes: dict[int, list[str]]) -> None:
    """Train with FSDP2, on weights that rank 0 alone reads, with rows that are trained late.

    accelerate takes the FSDP settings for GPUs only: on CPUs its ``AcceleratorState`` goes on with DDP and says
    nothing. Torch's FSDP2 itself works with gloo, so the processes say that they are not on CPUs.
    """
    import accelerate.state
    from accelerate.utils import DistributedType

    place(rank, world, port, **FSDP)
    original = accelerate.state.PartialState.__init__

    def initialise(self: Any, *arguments: Any, **settings: Any) -> None:
        original(self, *arguments, **settings)
        if self._shared_state.get("distributed_type") == DistributedType.MULTI_CPU:
            self._shared_state["distributed_type"] = DistributedType.MULTI_GPU

    accelerate.state.PartialState.__init__ = initialise  # type: ignore[method-assign]
    _train(folder, rank, world, modes.get(rank, []), steps=3, regenerate_every=2, model=str(folder.parent / "model"))


def _train(folder: Path, rank: int, world: int, modes: list[str], steps: int = 2, **changes: Any) -> None:
    calls: list[int] = []
    notes: dict[str, Any] = {"calls": calls, "written": [], "documents": [], "episodes": []}
    with tiny_training(folder, steps, documents=1, replay_share=0.0, save_steps=steps, **changes) as training:
        trainer, session = training.trainer, training.session
        designer = PoorDesigner(session.memory)
        session.rollout.designs.designer = designer
        generate, cycle_of = trainer._generate_single_turn, session.rollout.run

        def counted(prompt_ids: Any, images: Any, multimodal_fields: Any, num_generations: int) -> Any:
            calls.append(len(prompt_ids))
            return generate(prompt_ids, images, multimodal_fields, num_generations)

        def watched(*arguments: Any, **settings: Any) -> Any:
            plan = arguments[0]
            step = len(notes["episodes"])
            designer.mode = modes[step] if step < len(modes) else "rich"
            cycle = cycle_of(*arguments, **settings)
            notes["documents"] += [design.document.id for design in plan.designs]
            notes["written"] += [one.record.id for one in cycle.played if one.fresh]
            notes["episodes"].append(sum(len(one.plain) for one in cycle.played))
            return cycle

        trainer._generate_single_turn, session.rollout.run = counted, watched
        trainer.train()
        notes["writes"] = _may_write(session.memory)
        parameters = list(trainer.model.named_parameters())
        notes["sharded"] = all(type(weight).__name__ == "DTensor" for _, weight in parameters)
        weights = {
            name: (weight.full_tensor() if notes["sharded"] else weight).detach().contiguous()
            for name, weight in parameters
            if "lora" in name
        }
        save_file(weights, folder / f"rank{rank}.safetensors")
    (folder / f"rank{rank}.json").write_text(json.dumps(notes))


def _may_write(memory: Memory) -> bool:
    position = memory.position()
    try:
        memory.rollback("no such run", position)
    except Exception:
        return False
    return True


def crash_rank(folder: Path, rank: int, world: int, port: int, modes: dict[int, list[str]]) -> None:
    """Train by the whole recipe; rank 1 fails in its second cycle."""
    place(rank, world, port)
    config = tiny_config(folder, 4, documents=1)
    tokenizer = tiny_tokenizer()
    session = tiny_session(config, tokenizer)
    cycle_of = session.rollout.run
    cycles: list[int] = []

    def failing(*arguments: Any, **settings: Any) -> Any:
        cycles.append(1)
        if rank == 1 and len(cycles) == 2:
            raise RuntimeError("the prompt is too long")
        return cycle_of(*arguments, **settings)

    session.rollout.run = failing  # type: ignore[method-assign]
    log = os.open(folder.parent / f"stderr{rank}.txt", os.O_CREAT | os.O_WRONLY)
    os.dup2(log, 2)
    run(config, policy=(tiny_model(tokenizer), tokenizer), session=session)
