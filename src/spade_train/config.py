"""Settings of a training run: TRL's :class:`GRPOConfig` plus what self-play needs.

The number of generations, the accumulation steps and what else follows from the sizes of a cycle is derived, never
set; values that would make the update wrong are refused with the reason.
"""

from __future__ import annotations

import difflib
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, cast

import yaml
from trl import GRPOConfig

from spade_train.rewards import DESIGNER_REWARDS, HINTED_REWARDS, Penalties

MODES = ("self_play", "fixed_pool")
LOSSES = ("dapo", "cispo", "bnpo")
"""Losses in which a masked row weighs nothing."""


def _help(default: Any, text: str) -> Any:
    return field(default=default, metadata={"help": text})


class ConfigError(ValueError):
    """A setting is wrong, or contradicts another one."""


@dataclass
class SpadeConfig(GRPOConfig):  # type: ignore[misc]  # trl is not typed
    """One self-play training run. Every field of ``GRPOConfig`` is there too; ``max_steps`` counts cycles.

    One optimiser step is one cycle: ``documents`` times ``designs`` programs on every rank, each valid one played
    ``plays`` times plain and as often hinted.
    """

    # who learns, from what
    model: str = _help("nano", "policy: 'nano' (embedded), a directory, or a Hugging Face id")
    mode: str = _help("self_play", "'self_play', or 'fixed_pool': the agent alone on the environments in pool")
    corpus: str = _help("builtin:nano", "grounding documents: JSONL, Parquet, a folder of texts, or builtin:nano")
    prompts: str = _help("nano", "prompt set: nano, games, tool_use, or a folder")
    memory: str | None = _help(None, "folder of the environment memory; default <output_dir>/memory")
    memory_capacity: int | None = _help(None, "newest environments that exemplars and replays come from; default: 200")
    pool: str | None = _help(None, "folder of a memory with the environments of fixed_pool training")

    # adapter
    lora_r: int = _help(16, "rank of the LoRA adapter")
    lora_alpha: int = _help(32, "scale of the LoRA adapter")
    lora_targets: str = _help("q_proj,k_proj,v_proj,o_proj", "adapted modules, comma-separated, or 'all-linear'")

    # the size of a cycle, on each rank
    documents: int = _help(3, "documents of one cycle")
    designs: int = _help(6, "programs written for each document")
    plays: int = _help(6, "plain episodes of each environment, and as many hinted ones")
    replay_share: float = _help(0.25, "share of the played environments that come from the memory")
    replay_plays: int = _help(64, "plain episodes after which an environment is not replayed any more")
    environments: int = _help(18, "fixed_pool: environments of one cycle")

    # budgets; 0 takes the value of the prompt set
    design_tokens: int = _help(0, "longest program")
    turn_tokens: int = _help(0, "longest turn of the agent")
    episode_tokens: int = _help(0, "all turns of one episode")
    max_turns: int = _help(0, "turns of one episode")
    context_tokens: int = _help(0, "prompt and completion of one row; 0: the model's own")
    generation_rows: int = _help(256, "most sequences in one generate call; ignored by collective backends")

    # pay
    designer_reward: str = _help("blend", "one of blend, regret, plateau, solve_variance")
    return_mode: str = _help("final", "episode return: final, sum or discounted")
    discount: float = _help(1.0, "for return_mode discounted")
    invalid_reward: float = _help(0.0, "designer reward of a refused program")
    duplicate_reward: float = _help(0.0, "designer reward of a program that the memory has already")
    timeout_reward: float = _help(-0.5, "designer reward of a program that runs too long")
    designer_weight: float | None = _help(None, "factor of the designer's advantages; default: balance, at most 50")
    agent_weight: float | None = _help(None, "factor of the agent's advantages; default: 1 or balance")

    # sandbox, records, evaluation
    minimum_isolation: str = _help("full", "refuse to run programs with less: full, partial or static")
    threads: int = _help(0, "CPU threads of torch; 0 leaves them as they are, 1 is best for very small models")
    sandbox_workers: int = _help(64, "most live worker processes of one rank")
    transcripts: bool = _help(True, "write every program and episode to <output_dir>/transcripts.jsonl")
    heldout: str | None = _help(None, "JSONL of held-out programs; 'builtin:nano' for the embedded set")
    heldout_every: int = _help(0, "evaluate on them every so many cycles; 0: never")
    heldout_seeds: int = _help(2, "episodes of each held-out program")

    # other defaults than TRL's
    learning_rate: float = _help(2e-5, "peak learning rate of the adapter")
    lr_scheduler_type: str = _help("constant", "learning-rate schedule")
    adam_beta2: float = _help(0.98, "Adam's second decay rate")
    epsilon: float = _help(0.2, "lower clip of the probability ratio")
    epsilon_high: float | None = _help(0.28, "upper clip of the probability ratio")
    scale_rewards: str = _help("none", "must be none: the reward function normalises by role and group")
    router_aux_loss_coef: float | None = _help(0.0, "load-balancing loss of mixture-of-experts models")
    vllm_importance_sampling_mode: str = _help("token_truncate", "sequence modes mask long episodes nearly whole")
    logging_steps: float = _help(1, "must be 1: every cycle is a line of metrics.jsonl")
    save_total_limit: int | None = _help(2, "checkpoints to keep; at least 2")
    disable_dropout: bool = _help(True, "sampled and trained log-probabilities must agree")

    # derived; set by the sizes above
    num_generations: int | None = _help(None, "derived: rows of one cycle on one rank")
    gradient_accumulation_steps: int | None = _help(None, "derived: one optimiser step a cycle")

    def __post_init__(self) -> None:
        self._check_choices()
        self._refuse_contradictions()
        batch = min(int(self.per_device_train_batch_size), self.rows_needed)
        accumulation = -(-self.rows_needed // batch)
        slots = accumulation * batch
        self.per_device_train_batch_size: int = batch
        self._derive("num_generations", slots)
        self._derive("gradient_accumulation_steps", accumulation)
        self._derive("steps_per_generation", accumulation)
        if self.memory is None and self.output_dir is not None:
            self.memory = str(Path(self.output_dir) / "memory")
        with warnings.catch_warnings():  # TRL sets a field that transformers has renamed
            warnings.filterwarnings("ignore", message=".*gradient_checkpointing.*", category=FutureWarning)
            super().__post_init__()

    @property
    def hinted(self) -> bool:
        """Whether environments are played with hints as well."""
        return self.mode == "self_play" and self.designer_reward in HINTED_REWARDS

    @property
    def written(self) -> int:
        """Programs written in one cycle on one rank."""
        return self.documents * self.designs if self.mode == "self_play" else 0

    @property
    def reserved(self) -> int:
        """Environments of a cycle that are kept for replay."""
        return round(self.written * self.replay_share / (1.0 - self.replay_share))

    @property
    def places(self) -> int:
        """Environments that one cycle can play on one rank."""
        return self.written + self.reserved if self.mode == "self_play" else self.environments

    @property
    def rows_needed(self) -> int:
        """Rows of one cycle on one rank before rounding up to whole micro-batches."""
        return self.written + self.places * self.plays

    @property
    def penalties(self) -> Penalties:
        """Designer rewards of programs that cannot be played."""
        return Penalties(self.invalid_reward, self.duplicate_reward, self.timeout_reward)

    @property
    def run(self) -> str:
        """The name of this run in the memory."""
        return str(self.run_name or Path(self.output_dir or "run").resolve().name)

    def _derive(self, name: str, value: int) -> None:
        given = getattr(self, name)
        if given is not None and given != value:
            raise ConfigError(
                f"{name} is derived from documents, designs and plays: expected {value} or nothing, got {given}. "
                f"Leave it out; change the sizes of the cycle or per_device_train_batch_size instead."
            )
        setattr(self, name, value)

    def _check_choices(self) -> None:
        choices = {
            "mode": (self.mode, MODES),
            "designer_reward": (self.designer_reward, DESIGNER_REWARDS),
            "return_mode": (self.return_mode, ("final", "sum", "discounted")),
            "minimum_isolation": (self.minimum_isolation, ("full", "partial", "static")),
        }
        for name, (value, known) in choices.items():
            if value not in known:
                raise ConfigError(f"{name} must be one of {', '.join(known)}, got {value!r}")
        for name in ("documents", "designs", "plays", "environments", "lora_r", "max_steps", "generation_rows"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.plays < 2 or self.designs < 2:
            raise ConfigError("plays and designs must be at least 2: rows are compared within their group")
        if not 0.0 <= self.replay_share < 1.0:
            raise ConfigError(f"replay_share must lie in [0, 1), got {self.replay_share}")
        if self.heldout_every and not self.heldout:
            raise ConfigError("heldout_every needs heldout: a JSONL file of programs, or builtin:nano")
        if self.mode == "fixed_pool" and not self.pool:
            raise ConfigError("fixed_pool training needs pool: the folder of a memory with environments")

    def _refuse_contradictions(self) -> None:
        rules = {
            "scale_rewards": (("none", False), "advantages are normalised by role and group already"),
            "loss_type": (LOSSES, "under the other losses unused rows of a cycle dilute the update"),
            "mask_truncated_completions": ((False,), "it looks at the last token only and would drop whole episodes"),
            "num_iterations": ((1,), "a resumed run would sample again in the middle of a cycle"),
            "multi_objective_aggregation": (("sum_then_normalize",), "there is one reward function"),
            "reward_weights": ((None,), "there is one reward function; use designer_weight and agent_weight"),
            "logging_steps": ((1,), "every cycle is one line of metrics.jsonl"),
            "generation_batch_size": ((None,), "it follows from the sizes of a cycle"),
            "use_liger_kernel": ((False,), "TRL deprecates it and it replaces the forward pass"),
        }
        for name, (allowed, reason) in rules.items():
            if getattr(self, name) not in allowed:
                expected = " or ".join(repr(value) for value in allowed)
                raise ConfigError(f"{name} must be {expected}, got {getattr(self, name)!r}: {reason}")
        if self.save_total_limit is not None and self.save_total_limit < 2:
            raise ConfigError(
                f"save_total_limit must be at least 2, got {self.save_total_limit}: the older checkpoint is removed "
                f"before the newer one is complete"
            )


def load_recipe(path: str | Path, **overrides: Any) -> SpadeConfig:
    """Read a YAML recipe: a mapping of field names to values, checked like command-line arguments.

    Args:
        path: the recipe.
        overrides: values that replace those of the recipe.

    Raises:
        ConfigError: if the file is missing or no mapping, a name is unknown, or a value is refused.
    """
    from trl import TrlParser

    if not Path(path).is_file():
        raise ConfigError(f"recipe {path} does not exist; examples/recipes holds some to start from")
    try:
        values = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"recipe {path}: {error}") from error
    if not isinstance(values, dict):
        raise ConfigError(f"recipe {path} must be a mapping of settings, got {type(values).__name__}")
    values |= overrides
    known = SpadeConfig.__dataclass_fields__
    unknown = [name for name in values if name not in known]
    if unknown:
        near = difflib.get_close_matches(unknown[0], known, 3)
        raise ConfigError(
            f"recipe {path}: unknown setting {unknown[0]!r}" + (f"; did you mean {', '.join(near)}?" if near else "")
        )

    def refuse(message: str) -> NoReturn:
        raise ConfigError(f"recipe {path}: {message}")

    parser = TrlParser(SpadeConfig)
    parser.error = refuse
    parser.set_defaults_with_config(**values)
    (config,) = parser.parse_args_into_dataclasses(args=[])
    return cast(SpadeConfig, config)
