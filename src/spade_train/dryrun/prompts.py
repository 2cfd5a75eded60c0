"""The first prompts of a run as the policy will see them, without a policy."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

from spade_envs.batching import own_hints
from spade_envs.corpus import CorpusError
from spade_envs.designer.designer import Designer
from spade_envs.designer.prompts import PromptSet, PromptSetError
from spade_envs.memory import Memory, StoreError
from spade_envs.models.base import Message
from spade_envs.play import PlayConfig, PlayTask, start_episodes
from spade_envs.pools import PoolError
from spade_envs.record import EnvironmentRecord
from spade_envs.sandbox import ProgramError, Sandbox, SandboxError
from spade_envs.sandbox.types import IsolationLevel
from spade_train.config import ConfigError, SpadeConfig
from spade_train.curriculum import CurriculumConfig, SelfPlayCurriculum
from spade_train.dryrun.checks import Check
from spade_train.grounding import load_prompts, open_corpus
from spade_train.pool_sources import FixedPool, load_pool
from spade_train.tokens import ChatTokens, TemplateError, prepare_tokenizer


class Prompt(NamedTuple):
    """One conversation that the policy would continue. ``tokens`` is None without its tokenizer."""

    role: str
    messages: list[Message]
    tokens: int | None = None


def check_template(config: SpadeConfig, folder: Path | None) -> tuple[Check | None, ChatTokens | None]:
    """Load the tokenizer and see whether its template serves; nothing to say without the model's folder."""
    if folder is None:
        return None, None
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left", local_files_only=True)
        prepare_tokenizer(tokenizer, config.chat_template_kwargs, config.thinking)
        tokens = ChatTokens(tokenizer, config.chat_template_kwargs, config.thinking)
    except (OSError, ValueError) as error:
        remedy = "" if isinstance(error, TemplateError) else "get the whole model, tokenizer included"
        return Check("chat template", False, str(error), remedy), None
    return Check("chat template", True, "keeps earlier turns as they were sampled"), tokens


def check_prompts(config: SpadeConfig) -> tuple[Check, PromptSet | None]:
    """Read the prompt set."""
    try:
        prompts = load_prompts(config)
    except (PromptSetError, ConfigError) as error:
        return Check("prompts", False, str(error)), None
    return Check("prompts", True, f"{prompts.name}, skills: {', '.join(prompts.skills)}"), prompts


def check_pool(config: SpadeConfig) -> tuple[Check, FixedPool | None]:
    """Read the environments of fixed-pool training."""
    try:
        pool = load_pool(str(config.pool), minimum_isolation=cast(IsolationLevel, config.minimum_isolation))
    except (PoolError, StoreError, OSError) as error:
        return Check("pool", False, str(error), "see `pool` in docs/training.md"), None
    return Check("pool", True, f"{len(pool.records)} environments from {config.pool}"), pool


def designer_prompt(config: SpadeConfig, prompts: PromptSet) -> tuple[Check, list[Message] | None]:
    """Open the corpus and render what the designer would be asked first."""
    try:
        corpus = open_corpus(config.corpus)
        curriculum = SelfPlayCurriculum(corpus, prompts.skills, CurriculumConfig(documents=1, seed=config.seed))
        (design,) = curriculum.plan(0, 0, 1, []).designs
    except (CorpusError, OSError, ValueError) as error:
        return Check("corpus", False, str(error)), None  # it says what was expected
    try:
        with (
            tempfile.TemporaryDirectory(prefix="spade-dry-", ignore_cleanup_errors=True) as scratch,
            _memory(config, scratch) as memory,
            Sandbox() as sandbox,
        ):
            asked = Designer(prompts, memory, sandbox).prompt(design.document, design.skill, random.Random(config.seed))
    except (PromptSetError, StoreError) as error:
        return Check("first prompt", False, str(error), "the memory or the prompt set is at fault"), None
    return Check("corpus", True, f"{config.corpus}, first document {design.document.id}"), asked.messages


def agent_prompts(config: SpadeConfig, play: PlayConfig, pool: FixedPool | None) -> Iterator[tuple[str, list[Message]]]:
    """Yield what the agent would see first in an environment of the pool, or of the memory, without and with hint."""
    if pool is None:
        pool = FixedPool(_known(config))
    isolation = cast(IsolationLevel, config.minimum_isolation)
    for record in pool.records[:3]:
        try:
            with pool.sandbox(minimum_isolation=isolation, max_workers=2) as sandbox:
                program = sandbox.open(record.source, allow=record.allow)
                hint = record.hint or own_hints(sandbox, [(program, config.seed)])[0]
                tasks = [PlayTask(program, config.seed, one) for one in ([None, hint] if hint else [None])]
                episodes = start_episodes(sandbox, tasks, play)
        except (ProgramError, SandboxError):
            continue
        if all(episode.messages for episode in episodes):
            yield from zip(("agent", "agent with the hint"), (episode.messages for episode in episodes), strict=False)
            return


def counted(role: str, messages: list[Message], tokens: ChatTokens | None) -> Prompt:
    """Return a prompt with its length."""
    speaker: Any = "designer" if role == "designer" else "agent"
    return Prompt(role, messages, None if tokens is None else len(tokens.prompt(messages, speaker)))


def _known(config: SpadeConfig) -> list[EnvironmentRecord]:
    folder = str(config.memory)
    if not Memory.ids(folder):
        return []
    with Memory.open(folder, read_only=True) as memory:
        return memory.records(limit=3)


def _memory(config: SpadeConfig, scratch: str) -> Memory:
    """The run's memory as it is; an empty one in ``scratch`` if there is none, so that nothing is made."""
    if Memory.ids(str(config.memory)):
        return Memory.open(config.memory, capacity=config.memory_capacity, read_only=True)
    return Memory.open(scratch, capacity=config.memory_capacity)
