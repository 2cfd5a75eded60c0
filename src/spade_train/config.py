"""Settings of a training run: TRL's :class:`GRPOConfig` plus what self-play needs.

The number of generations, the accumulation steps and what else follows from the sizes of a cycle is derived, never
set; values that would make the update wrong are refused with the reason.
"""

from __future__ import annotations

import difflib
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, cast

from trl import GRPOConfig

from spade_train.recipe_files import read_recipe
from spade_train.rewards import HINTED_REWARDS, WINDOW_REWARDS, DesignerReward, Pay, Penalties
from spade_train.settings.base import ConfigError, at_least, launched_ranks, setting
from spade_train.settings.budgets import BudgetSettings
from spade_train.settings.cycle import CycleSettings
from spade_train.settings.life import LifeSettings
from spade_train.settings.pay import PaySettings
from spade_train.settings.policy import PolicySettings
from spade_train.settings.retirement import RetirementSettings

__all__ = ["LOSSES", "ConfigError", "SpadeConfig", "load_recipe"]

LOSSES = ("dapo", "cispo", "bnpo")
"""Losses in which a masked row weighs nothing."""


@dataclass
class SpadeConfig(
    PolicySettings,
    CycleSettings,
    RetirementSettings,
    BudgetSettings,
    PaySettings,
    LifeSettings,
    GRPOConfig,  # type: ignore[misc]  # trl is not typed
):
    """One self-play training run. Every field of ``GRPOConfig`` is there too; ``max_steps`` counts cycles.

    One optimiser step is one cycle: ``documents`` times ``designs`` programs on every rank, each valid one played
    ``plays`` times plain and as often hinted.
    """

    # other defaults than TRL's
    learning_rate: float = setting(2e-5, "peak learning rate of the adapter")
    lr_scheduler_type: str = setting("constant", "learning-rate schedule")
    adam_beta2: float = setting(0.98, "Adam's second decay rate")
    epsilon: float = setting(0.2, "lower clip of the probability ratio")
    epsilon_high: float | None = setting(0.28, "upper clip of the probability ratio")
    scale_rewards: str = setting("none", "must be none: the reward function normalises by role and group")
    router_aux_loss_coef: float | None = setting(0.0, "load-balancing loss of mixture-of-experts models")
    vllm_importance_sampling_mode: str = setting("token_truncate", "sequence modes mask long episodes nearly whole")
    logging_steps: float = setting(1, "must be 1: every cycle is a line of metrics.jsonl")
    save_total_limit: int | None = setting(2, "checkpoints to keep; at least 2")
    disable_dropout: bool = setting(True, "sampled and trained log-probabilities must agree")

    # derived; set by the sizes above
    num_generations: int | None = setting(None, "derived: rows of one cycle on one rank")
    gradient_accumulation_steps: int | None = setting(None, "derived: one optimiser step a cycle")

    def __post_init__(self) -> None:
        at_least(self, 1, ["max_steps"])
        for check in (self.check_policy, self.check_cycle, self.check_retirement, self.check_budgets, self.check_pay):
            check()
        self.check_life()
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
        if self.mode == "fixed_pool":
            return self.pool_hints
        return self.train_hints or self.designer_reward in HINTED_REWARDS

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
    def trained(self) -> frozenset[str]:
        """Roles whose rows are trained on."""
        wanted = {"designer": self.train_designer, "hint": self.train_hints, "agent": self.train_agent}
        if self.mode == "fixed_pool":
            wanted |= {"designer": False, "hint": False}
        return frozenset(role for role, on in wanted.items() if on)

    @property
    def late(self) -> bool:
        """Whether the designer's rows are trained several updates after they were sampled."""
        return self.regenerate_every > 1 and "designer" in self.trained

    @property
    def rows_needed(self) -> int:
        """Rows of one cycle on one rank before rounding up to whole micro-batches."""
        rows = {"designer": self.written, "hint": self.written * self.hints, "agent": self.places * self.plays}
        over_ranks = bool(self.trained & {"designer", "hint"}) and launched_ranks() > 1
        return sum(rows[role] for role in self.trained) + over_ranks  # an unused row balances what ranks compare

    @property
    def pay(self) -> Pay:
        """How the designer is paid."""
        return Pay(
            cast(DesignerReward, self.designer_reward),
            Penalties(self.invalid_reward, self.duplicate_reward, self.timeout_reward, self.quarantined_reward),
            (self.plateau_low, self.plateau_high),
            self.plateau_ramp,
            self.blend_plateau,
            self.blend_regret,
            self.regret_scale,
            self.fast_rate,
            self.slow_rate,
        )

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

    def _refuse_contradictions(self) -> None:
        if self.designer_reward in WINDOW_REWARDS and self.regenerate_every < 2:
            raise ConfigError(f"designer_reward {self.designer_reward} needs regenerate_every of at least 2")
        rules = {
            "scale_rewards": (("none", False), "advantages are normalised by role and group already"),
            "loss_type": (LOSSES, "under the other losses unused rows of a cycle dilute the update"),
            "mask_truncated_completions": ((False,), "it looks at the last token only and would drop whole episodes"),
            "num_iterations": ((1,), "a resumed run would sample again in the middle of a cycle"),
            "multi_objective_aggregation": (("sum_then_normalize",), "there is one reward function"),
            "reward_weights": ((None,), "there is one reward function; use designer_weight and agent_weight"),
            "logging_steps": ((1,), "every cycle is one line of metrics.jsonl"),
            "generation_batch_size": ((None,), "it follows from the sizes of a cycle"),
            "save_only_model": ((False,), "a checkpoint without optimiser and random states cannot be resumed exactly"),
            "resume_from_checkpoint": ((None,), "a run goes on from its own last checkpoint, by --resume"),
            "auto_find_batch_size": ((False,), "the rows of a cycle follow from the sizes above"),
            "load_best_model_at_end": ((False,), "best_metric keeps the best adapter in best/"),
            "max_completion_length": ((512, None), "budgets are design_tokens, turn_tokens and others"),  # TRL's own
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

    A recipe may build on another one, see :func:`spade_train.recipe_files.read_recipe`.

    Args:
        path: the recipe.
        overrides: values that replace those of the recipe.

    Raises:
        ConfigError: if the file is missing or no mapping, a name is unknown, or a value is refused.
    """
    from trl import TrlParser

    values = read_recipe(path)
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
