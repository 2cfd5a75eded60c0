"""Memories and pools of ours, and registered text environments, as suites: hint-free episodes on fixed seeds."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spade_envs.batching import describe
from spade_envs.episode import PlayConfig, PlayTask
from spade_envs.models.base import ChatModel, Sampling
from spade_envs.play import Player, play_episodes
from spade_envs.record import WIN_RETURN, EnvironmentRecord
from spade_envs.sandbox import Sandbox
from spade_envs.sandbox.types import IsolationLevel, ProgramError
from spade_train.evaluation.protocol import Protocol
from spade_train.evaluation.question import Answer, Item, Question
from spade_train.evaluation.suite import REFUSED, in_turn, is_refusal
from spade_train.pool_sources import FixedPool, load_pool

_FIRST_SEED = 1 << 31
"""Of episodes: seeds of training and calibration have 31 bits."""


@dataclass(frozen=True, slots=True)
class _Reference:
    record: EnvironmentRecord


class EnvironmentSuite:
    """Every environment of a pool, each on ``samples`` seeds; an episode counts if its return is a win.

    Args:
        name: of the suite: ``memory:DIR``, ``pool:PATH`` or ``gymnasium:ID[,ID…]``.
        protocol: budgets and sampling.
        prompts: name or folder of a prompt set; by default that of the environment's kind.
        minimum_isolation: of the sandbox.
        tools: whether models get tools natively, as text, or as they can take them ("auto").
    """

    def __init__(
        self,
        name: str,
        protocol: Protocol,
        *,
        prompts: str | None = None,
        minimum_isolation: IsolationLevel = "full",
        tools: str = "auto",
    ) -> None:
        options = {**protocol.options, "prompts": prompts or "by kind", "tools": tools}
        self.protocol = replace(protocol, title=name, options=options)
        self._name, self._prompts, self._tools = name, prompts, tools
        self._isolation: IsolationLevel = minimum_isolation
        self._pool: FixedPool | None = None
        self._sandbox: Sandbox | None = None

    @property
    def name(self) -> str:
        """As ``--suite`` names it."""
        return self._name

    @property
    def version(self) -> str:
        """A hash of the environments' sources."""
        ids = sorted(record.id for record in self._load().records)
        return f"{len(ids)} environments, {hashlib.sha256(json.dumps(ids).encode()).hexdigest()[:12]}"

    def questions(self, limit: int = 0) -> list[Question]:
        """One for each environment, in turn from each skill; what is asked is what its program says."""
        records = sorted(self._load().records, key=lambda record: record.id)
        found = in_turn([Question(record.id, group=record.skill, reference=_Reference(record)) for record in records])
        return [replace(question, group="") for question in found[: limit or None]]

    def answer(self, items: Sequence[Item], model: ChatModel, seed: int) -> list[Answer]:
        """Play the items' episodes together; those of one kind share prompts."""
        by_kind: dict[str, list[int]] = {}
        for place, item in enumerate(items):
            by_kind.setdefault(item.question.reference.record.kind, []).append(place)
        answers: dict[int, Answer] = {}
        for kind, places in by_kind.items():
            sampling = self.protocol.sampling(seed)
            played = self._play([items[place] for place in places], model, sampling, self._config(kind, model))
            answers.update(zip(places, played, strict=True))
        return [answers[place] for place in range(len(items))]

    def close(self) -> None:
        """End the sandbox."""
        if self._sandbox is not None:
            self._sandbox.close()
            self._sandbox = None

    def _play(
        self, items: Sequence[Item], model: ChatModel | Player, sampling: Sampling, config: PlayConfig
    ) -> list[Answer]:
        sandbox = self._open_sandbox()
        answers: dict[int, Answer] = {}
        with ExitStack() as stack:
            tasks: dict[int, PlayTask] = {}
            programs: dict[str, Any] = {}
            for place, item in enumerate(items):
                record = item.question.reference.record
                try:
                    if record.id not in programs:
                        programs[record.id] = sandbox.open(record.source, allow=record.allow)
                        stack.callback(programs[record.id].close)
                except ProgramError as error:
                    answers[place] = Answer(*item.key, item.question.group, 0.0, detail={"program": describe(error)})
                    continue
                seed = episode_seed(record.id, item.sample)
                tasks[place] = PlayTask(programs[record.id], seed, key=record.id, max_turns=record.max_turns)
            episodes = play_episodes(model, list(tasks.values()), sandbox, config, sampling)
            for place, episode in zip(tasks, episodes, strict=True):
                item = items[place]
                failed = episode.error if episode.stop == "model_error" else ""
                finish = "length" if episode.stop in ("token_budget", "context_limit") else "stop"
                detail: dict[str, Any] = {"return": episode.return_, "turns": episode.turns, "stop": str(episode.stop)}
                if is_refusal(failed):
                    failed, finish, detail = "", REFUSED, {**detail, "refused": failed}
                answers[place] = Answer(
                    *(*item.key, item.question.group, float(episode.return_ >= WIN_RETURN)),
                    text=json.dumps(episode.to_dict(), default=str),
                    finish=finish,
                    completion_tokens=episode.tokens,
                    error=failed,
                    detail=detail,
                )
        return [answers[place] for place in range(len(items))]

    def _config(self, kind: str, model: ChatModel) -> PlayConfig:
        from spade_envs.designer.prompt_files import default_prompt_set
        from spade_envs.designer.prompts import PromptSet

        chosen = PromptSet.load(self._prompts or default_prompt_set(model.name, kind))
        native = self._tools == "native" or (self._tools == "auto" and getattr(model, "native_tools", False))
        return PlayConfig(
            max_turns=self.protocol.max_turns,
            turn_tokens=self.protocol.max_tokens,
            episode_tokens=int(self.protocol.options["episode_tokens"]),
            system_prompt=chosen.agent_system,
            hint_template=chosen.hint_template,
            tools="native" if native else "text",
        )

    def _load(self) -> FixedPool:
        if self._pool is None:
            kind, _, rest = self._name.partition(":")
            spec = str(Path(rest)) if kind == "pool" else self._name
            self._pool = load_pool(spec, minimum_isolation=self._isolation)
        return self._pool

    def _open_sandbox(self) -> Sandbox:
        if self._sandbox is None:
            self._sandbox = self._load().sandbox(minimum_isolation=self._isolation)
        return self._sandbox


def episode_seed(record: str, sample: int) -> int:
    """The seed of an episode: the same in every run, and above all seeds of training."""
    return _FIRST_SEED + random.Random(f"evaluation/{record}/{sample}").getrandbits(30)
