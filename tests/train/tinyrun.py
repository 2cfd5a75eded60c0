"""A whole training run with a tiny random policy and a designer double; the other parts are real."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(Path(__file__).parent))

import torch
from accelerate import PartialState
from doubles import Documents, HashDesigner
from tiny import tiny_model, tiny_tokenizer
from transformers import TrainerCallback

from spade_envs.memory import HashedTokenEmbedder, Memory
from spade_envs.play import PlayConfig
from spade_envs.sandbox import Sandbox
from spade_train.config import SpadeConfig
from spade_train.curriculum import CurriculumConfig, SelfPlayCurriculum
from spade_train.cycle import CycleConfig
from spade_train.recipe import Training, build_trainer, load_policy, run
from spade_train.rollout import Rollout
from spade_train.selfplay import SelfPlay
from spade_train.tokens import ChatTokens


class KillCallback(TrainerCallback):
    """Kills the process at the end of one step."""

    def __init__(self, step: int) -> None:
        self._step = step

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Die, if it is time."""
        if state.global_step == self._step:
            os.kill(os.getpid(), signal.SIGKILL)


def tiny_config(output: str | Path, steps: int, **changes: Any) -> SpadeConfig:
    """Return a configuration whose cycle takes a fraction of a second."""
    settings: dict[str, Any] = {
        "output_dir": str(output),
        "max_steps": steps,
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "documents": 1,
        "designs": 4,
        "plays": 3,
        "replay_share": 0.25,
        "per_device_train_batch_size": 8,
        "learning_rate": 1e-2,
        "lora_r": 4,
        "lora_targets": "all-linear",
        "save_steps": 2,
        "report_to": "none",
        "disable_tqdm": True,
        "seed": 1,
        "minimum_isolation": "static",
    }
    return SpadeConfig(**(settings | changes))


def tiny_session(config: SpadeConfig, tokenizer: Any) -> SelfPlay:
    """Return a session with the designer double; the other parts are real."""
    tokens = ChatTokens(tokenizer)
    state = PartialState()
    with state.main_process_first():
        memory = Memory.open(config.memory, embedder=HashedTokenEmbedder(), read_only=not state.is_main_process)
    sandbox = Sandbox(minimum_isolation="static")
    play = PlayConfig(max_turns=3, turn_tokens=8, episode_tokens=32, system_prompt="Play.")
    cycle = CycleConfig(
        designs=config.designs,
        plays=config.plays,
        places=config.places,
        slots=int(config.num_generations or 0),
        design_tokens=12,
        context_tokens=400,
        window=config.regenerate_every,
        trained=config.trained,
        pay=config.pay,
    )
    rollout = Rollout(tokens, HashDesigner(memory), sandbox, play, cycle)
    sizes = CurriculumConfig(
        config.documents,
        config.places,
        config.reserved,
        12,
        config.seed,
        config.regenerate_every,
        cycles=int(config.max_steps),
    )
    curriculum = SelfPlayCurriculum(Documents(), ("s",), sizes)
    return SelfPlay(config, rollout, curriculum, memory, sandbox)


def tiny_training(output: str | Path, steps: int, **changes: Any) -> Training:
    """Return a trainer that is ready to run; its policy is ``model``, if one is given."""
    config = tiny_config(output, steps, **changes)
    tokenizer = tiny_tokenizer()
    policy = load_policy(config) if "model" in changes else (tiny_model(tokenizer), tokenizer)
    return build_trainer(config, policy=policy, session=tiny_session(config, tokenizer))


def tiny_run(output: str | Path, steps: int, kill_at: int = 0, **changes: Any) -> None:
    """Train from the start or from the last whole checkpoint, and save the adapter.

    With ``kill_at`` the process kills itself with SIGKILL at the end of that step, after the memory was written and
    before a checkpoint.
    """
    torch.set_num_threads(1)
    config = tiny_config(output, steps, **changes)
    tokenizer = tiny_tokenizer()
    callbacks = [KillCallback(kill_at)] if kill_at else []
    session = tiny_session(config, tokenizer)
    policy = (tiny_model(tokenizer), tokenizer)
    run(config, resume=True, policy=policy, session=session, callbacks=callbacks)
