"""What a self-play run holds besides the trainer: memory, sandbox, designer, curriculum.

:class:`SelfPlay` offers what a stock ``GRPOTrainer`` takes: a rollout function, a reward function, a dataset and
callbacks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from spade_envs.memory import Memory
from spade_envs.sandbox import Sandbox
from spade_train import ledger
from spade_train.adapter_off import AdapterOffSampler
from spade_train.advantages import SpadeReward
from spade_train.config import ConfigError, SpadeConfig
from spade_train.curriculum import Curriculum, ResumeError
from spade_train.cycle import Cycle, Sampler
from spade_train.late_rows import LateRows, is_corrected
from spade_train.metrics import cycle_metrics
from spade_train.opening import open_parts
from spade_train.quiet import quiet_trl
from spade_train.rollout import Rollout
from spade_train.rows import Row
from spade_train.thinking import thinking_metrics
from spade_train.trl_adapter import TrlSampler, check_trl, columns, gather
from spade_train.watch_metrics import watch_metrics

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import TrainerCallback

    from spade_envs.models.base import ChatModel


class SelfPlay:
    """The state of a run on one rank; make it with :meth:`from_config`. A context manager.

    Only rank 0 writes to the memory, after every step; the other ranks read it.
    """

    def __init__(
        self,
        config: SpadeConfig,
        rollout: Rollout,
        curriculum: Curriculum,
        memory: Memory,
        sandbox: Sandbox,
        author: ChatModel | None = None,
    ) -> None:
        self.config, self.rollout, self.curriculum = config, rollout, curriculum
        self.memory, self.sandbox, self._author = memory, sandbox, author
        self.reward = _reward(config)
        self.batch: Sequence[Row] = ()  # this rank's latest rows, in the order in which the trainer got them
        self._cycles: list[tuple[int, Cycle]] = []
        self.latest: list[tuple[int, Cycle]] = []  # this rank's cycles that were committed last, with their steps
        self.measured: dict[str, float] = {}  # by evaluations of the policy before this cycle
        self._quiet = ExitStack()

    @classmethod
    def from_config(cls, config: SpadeConfig, tokenizer: Any, *, context_tokens: int = 0) -> SelfPlay:
        """Open everything that ``config`` names.

        Args:
            config: the run.
            tokenizer: the policy's, with a chat template that preserves prefixes.
            context_tokens: the policy's context, where the configuration does not bound it.

        Raises:
            TemplateError: if the chat template cannot be used.
            PoolError: if the pool cannot be read or is empty.
            ConfigError: if a budget does not fit into the context, or a role cannot be trained.
            SandboxError: if programs cannot be isolated as well as asked for.
        """
        check_trl()
        if config.threads:
            import torch

            torch.set_num_threads(config.threads)
        parts = open_parts(config, tokenizer, context_tokens)
        return cls(config, parts.rollout, parts.curriculum, parts.memory, parts.sandbox, parts.author)

    def rollout_func(self, prompts: list[Any], trainer: Any) -> dict[str, Any]:
        """Run one cycle for a ``GRPOTrainer``; pass this as its ``rollout_func``."""
        if len(prompts) != self.rollout.config.slots:
            raise ConfigError(
                f"the trainer asked for {len(prompts)} rows on this rank, a cycle has {self.rollout.config.slots}: "
                f"use the dataset of SelfPlay.dataset() and leave evaluation to SpadeConfig.heldout"
            )
        if self.config.late and not is_corrected(trainer):
            raise ConfigError(
                "with regenerate_every > 1 the designer's rows are trained late: call "
                "spade_train.late_rows.correct_late_rows(trainer, lambda: session.batch) before trainer.train()"
            )
        step = int(trainer.state.global_step)
        own = self.config
        sampler = TrlSampler(trainer, rows=own.generation_rows, engine=own.engine, lag=own.environment_lag)
        author = self._designer_sampler(trainer, sampler)
        cycle, metrics = self.run_cycle(step, sampler, own.process_index, own.world_size, designer_sampler=author)
        metrics |= self._late(trainer, cycle)
        return columns(cycle.rows, metrics, with_logprobs=bool(trainer.use_vllm))

    def run_cycle(
        self, step: int, sampler: Sampler, rank: int = 0, world: int = 1, *, designer_sampler: Sampler | None = None
    ) -> tuple[Cycle, dict[str, float]]:
        """Run one cycle with any sampler, and return it with its metrics; :meth:`commit` stores it.

        Args:
            step: number of the cycle, from 0.
            sampler: the policy.
            rank: this process.
            world: number of processes that run cycles.
            designer_sampler: samples the programs, where that is not the policy as it is now.
        """
        from accelerate import PartialState

        newest = self.memory.capacity if self.config.reserved else 0
        records = self.memory.records(limit=newest, newest_first=True) if newest else []
        retired = self.memory.retired() if newest else {}
        plan = self.curriculum.plan(step, rank, world, records, retired)
        shared = world > 1 and self.config.mode == "self_play"
        self.rollout.window.gather = partial(gather, PartialState()) if shared else None
        cycle = self.rollout.run(plan, sampler, designer_sampler)
        self._cycles.append((step + 1, cycle))  # steps count from 1, as in the metrics
        self.batch = cycle.rows
        tokens = self.rollout.tokens
        metrics = cycle_metrics(cycle, design_tokens=self.rollout.config.design_tokens)
        metrics |= thinking_metrics(cycle.rows, tokens.tags, tokens.opened)
        metrics |= cycle.figures
        return cycle, metrics | watch_metrics(cycle, self.memory, self.sandbox) | self.measured

    def _designer_sampler(self, trainer: Any, sampler: Sampler) -> Sampler | None:
        """Return what samples the programs, where that is not the policy as it is now."""
        own = self.config.mode == "self_play" and not self.config.designer_model
        return AdapterOffSampler(trainer, sampler) if own and not self.config.train_designer else None

    def _late(self, trainer: Any, cycle: Cycle) -> dict[str, float]:
        """Score the rows that will be trained late, and correct those that are due; return metrics."""
        if not self.config.late:
            return {}
        late = LateRows(trainer, self.config.off_policy_cap)
        late.remember([one.row for one in cycle.written])
        return late.correct(cycle.rows)

    def dataset(self) -> Dataset:
        """Return a dataset with one row for each cycle and rank. Prompts are made inside the rollout."""
        from datasets import Dataset

        rows = self.config.max_steps * self.config.world_size
        return Dataset.from_dict({"prompt": [f"self-play cycle {index}" for index in range(rows)]})

    def callbacks(self) -> list[TrainerCallback]:
        """Return the callbacks, in the order in which they must come; see :mod:`spade_train.callbacks`."""
        from spade_train.callbacks import session_callbacks

        return session_callbacks(self)

    def commit(self, *, alone: bool = False) -> None:
        """Write what the ranks' latest cycles made to the memory; collective, unless this rank runs cycles alone."""
        from accelerate import PartialState

        state = PartialState()
        mine = [ledger.entry_of(cycle) for _, cycle in self._cycles]
        steps = [step for step, _ in self._cycles]
        self.latest, self._cycles = self._cycles, []
        gathered = [mine] if alone else gather(state, mine)
        if state.is_main_process:
            rules = self.config.retirement_rules
            for entries in gathered:
                for step, entry in zip(steps, entries):
                    ledger.write(self.memory, entry, run=self.config.run, step=step, rules=rules)
        if not alone:
            state.wait_for_everyone()

    def state_dict(self, step: int = 0) -> dict[str, Any]:
        """Return what a checkpoint needs besides the trainer's own state, after ``step`` cycles of this many ranks."""
        return {
            "version": 1,
            "run": self.config.run,
            "memory_position": self.memory.position(),
            "curriculum": self.curriculum.state_dict(step, self.config.world_size),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go back to the point at which :meth:`state_dict` was taken; collective.

        Raises:
            ResumeError: if the state is another run's, or the memory lacks what it was written with.
        """
        from accelerate import PartialState

        if state.get("version") != 1 or state.get("run") != self.config.run:
            raise ResumeError(
                f"the checkpoint is of run {state.get('run')!r}, this is {self.config.run!r}: keep run_name and the "
                f"name of output_dir when you resume"
            )
        if (position := self.memory.position()) < int(state["memory_position"]):
            raise ResumeError(
                f"the memory {self.memory.path} stands at position {position}, the checkpoint was written at "
                f"{state['memory_position']}: it was replaced or has lost writes. Put it back, or start a new run."
            )
        self.curriculum.load_state_dict(state["curriculum"])
        process = PartialState()
        if process.is_main_process:
            self.memory.rollback(self.config.run, int(state["memory_position"]))
        process.wait_for_everyone()

    def close(self) -> None:
        """Close the sandbox, the memory and the model that writes programs."""
        if self._author is not None:
            self._author.close()
        self.sandbox.close()
        self.memory.close()
        self._quiet.close()

    def __enter__(self) -> SelfPlay:
        self._quiet.enter_context(quiet_trl())
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _reward(config: SpadeConfig) -> SpadeReward:
    from accelerate import PartialState

    weights = {"designer": config.designer_weight, "hint": config.hint_weight, "agent": config.agent_weight}
    several = config.world_size > 1 and bool(config.trained & {"designer", "hint"})
    everyone = partial(gather, PartialState()) if several else None
    return SpadeReward(weights=weights, delay=config.regenerate_every, gather=everyone)
