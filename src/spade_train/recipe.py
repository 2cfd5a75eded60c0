"""From a configuration to a trained adapter: what ``spade train`` and ``spade quickstart`` call."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spade_train.alarms import Alarm
from spade_train.callbacks import EarlyStopCallback, StopSignals, last_checkpoint, read_alarms, read_metrics
from spade_train.callbacks.checkpoints import checkpoint_step
from spade_train.callbacks.disk import explained
from spade_train.card import adapter_card
from spade_train.config import ConfigError, SpadeConfig
from spade_train.late_rows import correct_late_rows
from spade_train.lora.export import save_adapter, save_merged
from spade_train.lora.targets import adapter_config
from spade_train.lora.trl_sync import adapter_engine, install_sync, parameter_gather
from spade_train.padding import less_padding
from spade_train.quiet import quiet_trl
from spade_train.ranks import stop_together
from spade_train.selfplay import SelfPlay
from spade_train.tokens import prepare_tokenizer

if TYPE_CHECKING:
    from transformers import TrainerCallback
    from trl import GRPOTrainer

logger = logging.getLogger(__name__)

ADAPTER_FOLDER = "adapter"
MERGED_FOLDER = "merged"
SERVED_FOLDER = "served"


@dataclass(slots=True)
class Training:
    """A trainer ready to run and the session behind it. A context manager that closes the session."""

    trainer: GRPOTrainer
    session: SelfPlay

    def __enter__(self) -> Training:
        return self

    def __exit__(self, *_: object) -> None:
        for callback in self.trainer.callback_handler.callbacks:
            if isinstance(callback, StopSignals):
                callback.restore()
        self.session.close()


@dataclass(frozen=True, slots=True)
class RunResult:
    """Where a finished run left what."""

    output_dir: Path
    adapter: Path  # load it with peft.PeftModel.from_pretrained(base, adapter)
    steps: int
    metrics: list[dict[str, Any]]  # the lines of metrics.jsonl, oldest first
    alarms: list[Alarm] = field(default_factory=list)  # that were told, oldest first
    stopped: str = ""  # why it ended before its last step
    interrupted: bool = False  # by a signal: resume it; ``adapter`` is then the checkpoint


def policy_source(model: str) -> str:
    """Return the directory or hub id of a policy: "nano" and "smollm2" are names of models that packages hold.

    Raises:
        ConfigError: if the package that holds it is not installed.
    """
    from spade_envs.models import ModelError
    from spade_envs.models.smollm2 import smollm2_folder
    from spade_envs.models.transformers import NANO_FOLDER

    if model == "nano":
        return str(NANO_FOLDER)
    if model == "smollm2":
        try:
            return str(smollm2_folder())
        except ModelError as error:
            raise ConfigError(str(error)) from error
    return model


def load_policy(config: SpadeConfig) -> tuple[Any, Any]:
    """Load the policy and its tokenizer: the embedded nano model, SmolLM2, a directory, or a Hugging Face id.

    Raises:
        ConfigError: if it cannot be loaded.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from spade_envs.models import ModelError
    from spade_envs.models.pretrained import from_pretrained

    name = policy_source(config.model)
    settings: dict[str, Any] = {"dtype": torch.bfloat16 if config.bf16 else torch.float32}
    if (Path(name) / "adapter_config.json").is_file():
        raise ConfigError(
            f"model {config.model!r} is an adapter, and a run makes its own: give the base model, or merge the adapter "
            f"into it first (merge: true in the run that made it, or spade_train.lora.export.export_merged)"
        )
    if config.load_in_4bit:
        settings["quantization_config"] = _four_bits(settings["dtype"])
    settings |= config.model_init_kwargs or {}
    remote = config.trust_remote_code
    try:
        tokenizer = from_pretrained(AutoTokenizer, name, padding_side="left", trust_remote_code=remote)
        model = from_pretrained(AutoModelForCausalLM, name, trust_remote_code=remote, **settings)
    except ModelError as error:
        raise ConfigError(f"the policy cannot be loaded: {error}") from error
    prepare_tokenizer(tokenizer, config.chat_template_kwargs, config.thinking)
    return model, tokenizer


def _four_bits(dtype: Any) -> Any:
    """Return the quantisation of QLoRA (Dettmers et al., 2023): NF4, twice quantised.

    Raises:
        ConfigError: if bitsandbytes is not installed.
    """
    import importlib.util

    from transformers import BitsAndBytesConfig

    if importlib.util.find_spec("bitsandbytes") is None:
        raise ConfigError("load_in_4bit needs bitsandbytes and a GPU: pip install bitsandbytes, or leave it out")
    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=dtype,
    )


def build_trainer(
    config: SpadeConfig,
    *,
    policy: tuple[Any, Any] | None = None,
    session: SelfPlay | None = None,
    callbacks: Sequence[TrainerCallback] = (),
) -> Training:
    """Put a stock ``GRPOTrainer`` together.

    Args:
        config: the run.
        policy: model and tokenizer, if they are loaded already.
        session: what the run holds besides, if it is open already.
        callbacks: further callbacks, e.g. a progress display.
    """
    from transformers.trainer_callback import PrinterCallback, ProgressCallback
    from trl import GRPOTrainer

    model, tokenizer = policy or load_policy(config)
    if session is None:
        context = int(getattr(model.config.get_text_config(), "max_position_embeddings", 0))
        session = SelfPlay.from_config(config, tokenizer, context_tokens=context)
    adapter = adapter_config(
        model, targets=config.lora_targets, r=config.lora_r, alpha=config.lora_alpha, rslora=config.lora_rslora
    )
    colocated = bool(config.use_vllm) and config.vllm_mode == "colocate"
    serving = adapter_engine(
        wanted=config.lora_sync, r=config.lora_r, colocated=colocated, sleeps=bool(config.vllm_enable_sleep_mode)
    )
    with quiet_trl(), serving:
        trainer = GRPOTrainer(
            model=model,
            args=config,
            train_dataset=session.dataset(),
            processing_class=tokenizer,
            peft_config=adapter,
            rollout_func=session.rollout_func,
            reward_funcs=session.reward,
            callbacks=[*session.callbacks(), *callbacks],
        )
    for printer in (PrinterCallback, ProgressCallback):  # they print every one of the metrics at every step
        trainer.remove_callback(printer)
    trainer.create_model_card = lambda *_, **__: None  # it describes a policy with a model in memory as made of "None"
    parameter_gather(trainer.accelerator)  # refuses what could not be saved at the end
    less_padding(trainer)
    way = install_sync(
        trainer, wanted=config.lora_sync, folder=config.lora_folder or Path(config.output_dir) / SERVED_FOLDER
    )
    logger.info("adapter on %s; weights reach vLLM as: %s", ", ".join(sorted(adapter.target_modules)), way)
    if config.regenerate_every > 1:
        correct_late_rows(trainer, lambda: session.batch)
    return Training(trainer, session)


def run(
    config: SpadeConfig,
    *,
    resume: bool = False,
    policy: tuple[Any, Any] | None = None,
    session: SelfPlay | None = None,
    callbacks: Sequence[TrainerCallback] = (),
) -> RunResult:
    """Train and save the adapter to ``<output_dir>/adapter``.

    Args:
        config: the run.
        resume: go on from the last whole checkpoint in ``output_dir``, or start if there is none.
        policy: model and tokenizer, if they are loaded already.
        session: what the run holds besides, if it is open already; it is closed at the end.
        callbacks: further callbacks.

    Raises:
        ResumeError: if ``output_dir`` holds a run and ``resume`` is off, or the checkpoint is another run's.
    """
    import torch

    if config.threads:
        torch.set_num_threads(config.threads)
    folder = Path(config.output_dir)
    checkpoint = last_checkpoint(folder) if resume else None
    if resume and config.process_index == 0:
        _drop_partial(folder, checkpoint)
        _say_where(folder, checkpoint, int(config.max_steps))
    with (
        stop_together(folder, config.process_index, config.world_size),
        explained(folder),
        build_trainer(config, policy=policy, session=session, callbacks=callbacks) as training,
    ):
        trainer = training.trainer
        with quiet_trl():
            trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        steps, metrics, alarms = int(trainer.state.global_step), read_metrics(folder), read_alarms(folder)
        last = metrics[-1] if metrics else {}
        signal, early = _reasons(trainer)
        if signal and steps < config.max_steps:
            whole = last_checkpoint(folder)
            assert whole is not None  # the signal's own
            return RunResult(folder, whole, steps, metrics, alarms, stopped=signal, interrupted=True)
        adapter = folder / ADAPTER_FOLDER
        policy_model = trainer.accelerator.unwrap_model(trainer.model)
        write, gather = config.process_index == 0, parameter_gather(trainer.accelerator)
        save_adapter(policy_model, adapter, write=write, gather=gather)
        if config.merge:
            save_merged(policy_model, folder / MERGED_FOLDER, write=write, gather=gather)
        if write:
            trainer.processing_class.save_pretrained(adapter)  # so that hf:<adapter> is a model, template included
            if config.merge:
                trainer.processing_class.save_pretrained(folder / MERGED_FOLDER)
            (adapter / "README.md").write_text(adapter_card(config, steps, last), encoding="utf-8")
        trainer.accelerator.wait_for_everyone()
        return RunResult(folder, adapter, steps, metrics, alarms, stopped=early)


def _reasons(trainer: Any) -> tuple[str, str]:
    """Return the signal that stopped a run and why it was stopped early, "" where neither did."""
    callbacks = trainer.callback_handler.callbacks
    signal = next((one.reason for one in callbacks if isinstance(one, StopSignals)), "")
    return signal, next((one.reason for one in callbacks if isinstance(one, EarlyStopCallback)), "")


def _say_where(folder: Path, whole: Path | None, last: int) -> None:
    """Tell where a resumed run goes on, aloud if that is not what somebody expects who resumes."""
    step = 0 if whole is None else checkpoint_step(whole)
    if whole is None:
        logger.warning("%s holds no whole checkpoint: the run starts at its first step", folder)
    elif step >= last:
        logger.warning(
            "%s has done %d of %d steps already: nothing is left to train; raise max_steps (--set max_steps=%d)",
            *(folder, step, last, 2 * step),
        )
    else:
        logger.info("%s goes on after step %d of %d", folder, step, last)


def _drop_partial(folder: Path, whole: Path | None) -> None:
    """Remove newer checkpoints that a kill cut short or that are damaged, so that nobody resumes from them."""
    step = -1 if whole is None else checkpoint_step(whole)
    for path in folder.glob("checkpoint-*"):
        if checkpoint_step(path) > step:
            logger.warning("removing %s: it is not whole", os.fspath(path))
            shutil.rmtree(path)
