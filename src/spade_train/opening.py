"""Open what a configuration names: memory, sandbox, designer, curriculum, the model that writes programs."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from spade_envs.contamination import CleanCorpus
from spade_envs.designer.designer import Designer
from spade_envs.designer.hints import HintWriter
from spade_envs.designer.prompts import PromptSet
from spade_envs.memory import Memory
from spade_envs.play import PlayConfig
from spade_envs.sandbox import IsolationLevel, Limits, Sandbox
from spade_train.config import ConfigError, SpadeConfig
from spade_train.curriculum import Curriculum, CurriculumConfig, PoolCurriculum, SelfPlayCurriculum
from spade_train.cycle import CycleConfig
from spade_train.evaluation.contamination import make_guard
from spade_train.grounding import load_prompts, open_corpus
from spade_train.pool_sources import load_pool
from spade_train.ranks import sandbox_workers
from spade_train.rollout import Rollout
from spade_train.tokens import ChatTokens

if TYPE_CHECKING:
    from spade_envs.models.base import ChatModel

_CONTEXT = 32_768


@dataclass(frozen=True, slots=True)
class Parts:
    """What a session is made of."""

    rollout: Rollout
    curriculum: Curriculum
    memory: Memory
    sandbox: Sandbox
    author: ChatModel | None = None  # writes the programs, where that is not the policy


def open_parts(config: SpadeConfig, tokenizer: Any, context_tokens: int) -> Parts:
    """Open everything that ``config`` names; see :meth:`spade_train.selfplay.SelfPlay.from_config`."""
    tokens = ChatTokens(tokenizer, config.chat_template_kwargs, config.thinking)
    prompts = load_prompts(config)
    context = config.context_tokens or context_tokens or _context(tokenizer)
    play = play_config(config, prompts, context)
    memory = _memory(config)
    cycle = _cycle_config(config, prompts, context)
    if config.mode == "fixed_pool":
        return _pool_parts(config, tokens, play, cycle, memory)
    sandbox = Sandbox(Limits(), max_workers=_workers(config), minimum_isolation=_isolation(config))
    guard = make_guard(config.contamination, config.suites if config.evaluate_every else (), config.evaluate_limit)
    corpus = open_corpus(config.corpus) if guard is None else CleanCorpus(open_corpus(config.corpus), guard)
    curriculum = SelfPlayCurriculum(corpus, prompts.skills, _sizes(config))
    designer = Designer(
        *(prompts, memory, sandbox),
        generator=config.designer_model or config.model,
        refuse=None if guard is None else guard.why,
    )
    if designer.own_hint and config.train_hints:
        raise ConfigError(
            f"train_hints: the programs of prompt set {config.prompts!r} carry their own hints, the policy writes "
            f"none; use a set whose hints are written (small, games, tool_use)"
        )
    hints = None if designer.own_hint else HintWriter(prompts, sandbox, designer.validation)
    author = _author(config)
    warmth = prompts.designer_sampling.temperature
    rollout = Rollout(tokens, designer, sandbox, play, cycle, hints, author=author, author_temperature=warmth)
    return Parts(rollout, curriculum, memory, sandbox, author)


def _pool_parts(config: SpadeConfig, tokens: ChatTokens, play: PlayConfig, cycle: CycleConfig, memory: Memory) -> Parts:
    pool = load_pool(str(config.pool), minimum_isolation=_isolation(config))
    sandbox = pool.sandbox(Limits(), max_workers=_workers(config), minimum_isolation=_isolation(config))
    curriculum = PoolCurriculum(pool.records, config.environments, config.seed)
    return Parts(Rollout(tokens, None, sandbox, play, cycle), curriculum, memory, sandbox)


def _memory(config: SpadeConfig) -> Memory:
    from accelerate import PartialState

    state = PartialState()
    with state.main_process_first():  # rank 0 makes the database
        return Memory.open(config.memory, capacity=config.memory_capacity, read_only=not state.is_main_process)


def _workers(config: SpadeConfig) -> int:
    return sandbox_workers(config.sandbox_workers, config.places)


def _isolation(config: SpadeConfig) -> IsolationLevel:
    return cast(IsolationLevel, config.minimum_isolation)


def _author(config: SpadeConfig) -> ChatModel | None:
    if not config.designer_model:
        return None
    from spade_envs.models import load_model

    return load_model(config.designer_model)


def _cycle_config(config: SpadeConfig, prompts: PromptSet, context: int) -> CycleConfig:
    return CycleConfig(
        designs=config.designs,
        plays=config.plays,
        hinted=config.hinted,
        hints=config.hints,
        places=config.places,
        slots=int(config.num_generations or 0),
        design_tokens=config.design_tokens or prompts.designer_sampling.max_tokens,
        hint_tokens=prompts.hint_sampling.max_tokens,
        hint_temperature=prompts.hint_sampling.temperature,
        context_tokens=context,
        window=config.regenerate_every,
        trained=config.trained,
        pay=config.pay,
    )


def _sizes(config: SpadeConfig) -> CurriculumConfig:
    return CurriculumConfig(
        config.documents,
        config.places,
        config.reserved,
        config.replay_plays,
        config.seed,
        config.regenerate_every,
        config.active_skills,
        config.easy_share,
        int(config.max_steps),
    )


def _context(tokenizer: Any) -> int:
    """Return the context that the tokenizer declares, or a usual one (undeclared is a huge number)."""
    declared = int(getattr(tokenizer, "model_max_length", 0) or 0)
    return declared if 0 < declared < 1 << 24 else _CONTEXT


def play_config(config: SpadeConfig, prompts: PromptSet, context: int) -> PlayConfig:
    """Return how episodes are played: the prompt set's budgets, replaced by those that the run sets.

    Raises:
        ConfigError: if a turn does not fit into a context of ``context`` tokens.
    """
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
