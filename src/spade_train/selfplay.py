"""What a self-play run holds besides the trainer: memory, sandbox, designer, curriculum.

:class:`SelfPlay` offers what a stock ``GRPOTrainer`` takes: a rollout function, a reward function, a dataset and
callbacks.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from spade_envs.corpus import Corpus
from spade_envs.designer.designer import Designer
from spade_envs.designer.hints import HintWriter
from spade_envs.designer.prompts import PromptSet
from spade_envs.memory import Memory
from spade_envs.play import PlayConfig
from spade_envs.record import EnvironmentRecord
from spade_envs.sandbox import IsolationLevel, Limits, Sandbox
from spade_train.config import ConfigError, SpadeConfig
from spade_train.curriculum import Curriculum, CurriculumConfig, PoolCurriculum, ResumeError, SelfPlayCurriculum
from spade_train.cycle import Cycle, CycleConfig
from spade_train.evaluation.heldout import evaluate, load_programs
from spade_train.metrics import cycle_metrics
from spade_train.pool_sources import load_pool
from spade_train.rewards import DesignerReward, SpadeReward
from spade_train.rollout import Rollout
from spade_train.tokens import ChatTokens
from spade_train.trl_adapter import TrlSampler, check_trl, columns, gather

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import TrainerCallback

_CONTEXT = 32_768


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What one rank's cycle leaves behind; gathered to rank 0."""

    records: list[EnvironmentRecord]
    plays: list[tuple[str, bool, tuple[float, ...]]]  # record id, hinted, returns


class SelfPlay:
    """The state of a run on one rank; make it with :meth:`from_config`. A context manager.

    Only rank 0 writes to the memory, after every step; the other ranks read it.
    """

    def __init__(
        self, config: SpadeConfig, rollout: Rollout, curriculum: Curriculum, memory: Memory, sandbox: Sandbox
    ) -> None:
        self.config, self.rollout, self.curriculum = config, rollout, curriculum
        self.memory, self.sandbox = memory, sandbox
        self.reward = SpadeReward(designer_weight=config.designer_weight, agent_weight=config.agent_weight)
        self._cycles: list[tuple[int, Cycle]] = []
        self.latest: list[tuple[int, Cycle]] = []  # this rank's cycles that were committed last, with their steps
        self._heldout = load_programs(config.heldout) if config.heldout and config.heldout_every else []

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
            ConfigError: if a budget does not fit into the context.
            SandboxError: if programs cannot be isolated as well as asked for.
        """
        from accelerate import PartialState

        check_trl()
        tokens = ChatTokens(tokenizer, config.chat_template_kwargs)
        prompts = PromptSet.load(config.prompts)
        context = config.context_tokens or context_tokens or _context(tokenizer)
        play = _play_config(config, prompts, context)
        state = PartialState()
        with state.main_process_first():  # rank 0 makes the database
            memory = Memory.open(config.memory, capacity=config.memory_capacity, read_only=not state.is_main_process)
        isolation = cast(IsolationLevel, config.minimum_isolation)
        pool = load_pool(str(config.pool), minimum_isolation=isolation) if config.mode == "fixed_pool" else None
        sandbox = (pool.sandbox if pool is not None else Sandbox)(
            Limits(), max_workers=config.sandbox_workers, minimum_isolation=isolation
        )
        design_tokens = config.design_tokens or prompts.designer_sampling.max_tokens
        cycle = CycleConfig(
            designs=config.designs,
            plays=config.plays,
            hinted=config.hinted,
            places=config.places,
            slots=int(config.num_generations or 0),
            design_tokens=design_tokens,
            hint_tokens=prompts.hint_sampling.max_tokens,
            hint_temperature=prompts.hint_sampling.temperature,
            context_tokens=context,
            reward=cast(DesignerReward, config.designer_reward),
            penalties=config.penalties,
        )
        if pool is not None:
            curriculum: Curriculum = PoolCurriculum(pool.records, config.environments, config.seed)
            rollout = Rollout(tokens, None, sandbox, play, cycle)
        else:
            sizes = CurriculumConfig(config.documents, config.places, config.reserved, config.replay_plays, config.seed)
            curriculum = SelfPlayCurriculum(Corpus.open(config.corpus), prompts.skills, sizes)
            designer = Designer(prompts, memory, sandbox, generator=config.model)
            hints = None if designer.own_hint else HintWriter(prompts, sandbox, designer.validation)
            rollout = Rollout(tokens, designer, sandbox, play, cycle, hints)
        return cls(config, rollout, curriculum, memory, sandbox)

    def rollout_func(self, prompts: list[Any], trainer: Any) -> dict[str, Any]:
        """Run one cycle for a ``GRPOTrainer``; pass this as its ``rollout_func``."""
        if len(prompts) != self.rollout.config.slots:
            raise ConfigError(
                f"the trainer asked for {len(prompts)} rows on this rank, a cycle has {self.rollout.config.slots}: "
                f"use the dataset of SelfPlay.dataset() and leave evaluation to SpadeConfig.heldout"
            )
        step = int(trainer.state.global_step)
        sampler = TrlSampler(trainer, rows=self.config.generation_rows)
        newest = self.memory.capacity if self.config.reserved else 0
        records = self.memory.records(limit=newest, newest_first=True) if newest else []
        plan = self.curriculum.plan(step, self.config.process_index, self.config.world_size, records)
        cycle = self.rollout.run(plan, sampler)
        self._cycles.append((step + 1, cycle))  # steps count from 1, as in the metrics
        metrics = cycle_metrics(cycle)
        if self._heldout and step % self.config.heldout_every == 0:
            metrics |= self._evaluate(trainer, sampler)
        return columns(cycle.rows, metrics, with_logprobs=bool(trainer.use_vllm))

    def _evaluate(self, trainer: Any, sampler: TrlSampler) -> dict[str, float]:
        """Return the success on held-out programs of the policy before this cycle's update, each rank its share.

        The policy's own random state is not touched, so evaluating does not change the run.
        """
        from spade_envs.models.transformers import TransformersModel

        if sampler.collective:
            raise ConfigError("heldout_every needs a policy that is whole on each rank; evaluate checkpoints instead")
        policy = trainer.accelerator.unwrap_model(trainer.model)
        model = TransformersModel(policy, trainer.processing_class, name="policy")
        mine = self._heldout[self.config.process_index :: self.config.world_size]
        result = evaluate(model, mine, self.sandbox, self.rollout.play, seeds=self.config.heldout_seeds)
        tiers = {f"heldout/tier_{tier}": rate for tier, rate in result.by_tier.items()}
        return {"heldout/success": result.success, **tiers}

    def dataset(self) -> Dataset:
        """Return a dataset with one row for each cycle and rank. Prompts are made inside the rollout."""
        from datasets import Dataset

        rows = self.config.max_steps * self.config.world_size
        return Dataset.from_dict({"prompt": [f"self-play cycle {index}" for index in range(rows)]})

    def callbacks(self) -> list[TrainerCallback]:
        """Return the callbacks: memory and checkpoints, metrics, transcripts."""
        from spade_train.callbacks import MemoryCallback, MetricsCallback, TranscriptsCallback

        own: list[TrainerCallback] = [MemoryCallback(self), MetricsCallback()]
        return [*own, TranscriptsCallback(self, lines=True, parts=True)] if self.config.transcripts else own

    def commit(self) -> None:
        """Write what the ranks' latest cycles made to the memory; collective."""
        from accelerate import PartialState

        state = PartialState()
        mine = [_outcome(cycle) for _, cycle in self._cycles]
        steps = [step for step, _ in self._cycles]
        self.latest, self._cycles = self._cycles, []
        gathered = gather(state, mine)
        if state.is_main_process:
            for outcomes in gathered:
                for step, outcome in zip(steps, outcomes):
                    self._write(step, outcome)
        state.wait_for_everyone()

    def _write(self, step: int, outcome: _Outcome) -> None:
        run = self.config.run
        for record in outcome.records:
            self.memory.add(record, run=run)
        for key, hinted, returns in outcome.plays:
            self.memory.record_plays(key, returns, hinted=hinted, run=run, step=step)

    def state_dict(self) -> dict[str, Any]:
        """Return what a checkpoint needs besides the trainer's own state."""
        return {
            "version": 1,
            "run": self.config.run,
            "memory_position": self.memory.position(),
            "curriculum": self.curriculum.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go back to the point at which :meth:`state_dict` was taken; collective.

        Raises:
            ResumeError: if the state is another run's.
        """
        from accelerate import PartialState

        if state.get("version") != 1 or state.get("run") != self.config.run:
            raise ResumeError(
                f"the checkpoint is of run {state.get('run')!r}, this is {self.config.run!r}: keep run_name and the "
                f"name of output_dir when you resume"
            )
        self.curriculum.load_state_dict(state["curriculum"])
        process = PartialState()
        if process.is_main_process:
            self.memory.rollback(self.config.run, int(state["memory_position"]))
        process.wait_for_everyone()

    def close(self) -> None:
        """Close the sandbox and the memory."""
        self.sandbox.close()
        self.memory.close()

    def __enter__(self) -> SelfPlay:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _context(tokenizer: Any) -> int:
    """Return the context that the tokenizer declares, or a usual one (undeclared is a huge number)."""
    declared = int(getattr(tokenizer, "model_max_length", 0) or 0)
    return declared if 0 < declared < 1 << 24 else _CONTEXT


def _play_config(config: SpadeConfig, prompts: PromptSet, context: int) -> PlayConfig:
    settings: dict[str, Any] = {
        "system_prompt": prompts.agent_system,
        "hint_template": prompts.hint_template,
        **prompts.play,
        "return_mode": config.return_mode,
        "discount": config.discount,
    }
    for name in ("max_turns", "turn_tokens", "episode_tokens"):
        if value := getattr(config, name):
            settings[name] = value
    play = PlayConfig(**settings)
    if play.turn_tokens >= context:
        raise ConfigError(
            f"turn_tokens ({play.turn_tokens}) must be smaller than the policy's context of {context} tokens"
        )
    return dataclasses.replace(play, context_tokens=context)


def _outcome(cycle: Cycle) -> _Outcome:
    plays = [
        (one.record.id, hinted, returns)
        for one in cycle.played
        for hinted in (False, True)
        if (returns := one.returns(hinted=hinted))
    ]
    records = [one.record for one in cycle.played]  # those of a fixed pool too; known ones are not added again
    return _Outcome(records, plays)
