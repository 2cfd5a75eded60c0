"""A model on many machines: conversations go in small shards to actors that hold the model."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from spade_envs.cluster.workers import Workers, shards
from spade_envs.models.base import ChatModel, Completion, Conversation, Sampling
from spade_envs.models.load import load_model

_SHARD = 8


class _Holder:
    """An actor with a model in it, loaded by the first call: an error then reaches whoever called."""

    def __init__(self, spec: str, options: Mapping[str, Any]) -> None:
        self._spec, self._options = spec, options

    @cached_property
    def _model(self) -> ChatModel:
        return load_model(self._spec, **self._options)

    def name(self, _: None) -> str:
        return self._model.name

    def complete(self, work: tuple[list[Conversation], Sampling]) -> list[Completion]:
        return self._model.complete(*work)


class ClusterModel:
    """A :class:`~spade_envs.models.base.ChatModel` of actors.

    Each shard of eight conversations has a seed of its own, derived from the call's; replies therefore do not depend on
    the number of actors, but differ from those of the same model in one process.
    """

    def __init__(
        self, spec: str, workers: int, *, cpus: float = 1.0, gpus: float = 0.0, options: Mapping[str, Any] | None = None
    ) -> None:
        """Start ``workers`` actors with the model that ``spec`` names (see ``load_model``), each with these resources.

        Raises:
            ModelError: if the model cannot be loaded there. ClusterError: if the cluster cannot be used.
        """
        self._workers = Workers(_Holder, workers, (spec, dict(options or {})), cpus=cpus, gpus=gpus)
        self._name: str = next(self._workers.map("name", [None]))

    @property
    def name(self) -> str:
        """The model's name."""
        return self._name

    def complete(self, conversations: Sequence[Conversation], sampling: Sampling) -> list[Completion]:
        """Return one completion for each conversation, in order; see :class:`~spade_envs.models.base.ChatModel`."""
        parts = shards(len(conversations), _SHARD)
        work = (
            ([list(conversations[index]) for index in part], replace(sampling, seed=_derived(sampling.seed, number)))
            for number, part in enumerate(parts)
        )
        return [completion for replies in self._workers.map("complete", work) for completion in replies]

    def close(self) -> None:
        """Stop the actors."""
        self._workers.close()


def _derived(seed: int, shard: int) -> int:
    return int.from_bytes(hashlib.blake2b(f"{seed}/{shard}".encode(), digest_size=6).digest(), "big")
