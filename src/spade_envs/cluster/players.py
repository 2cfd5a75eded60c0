"""Calibration on many machines: each actor has a sandbox and a player, and plays one chunk of records at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from spade_envs.calibration import Calibration, CalibrationConfig, calibrate
from spade_envs.cluster.workers import Workers
from spade_envs.episode import PlayConfig
from spade_envs.models.base import ChatModel, Sampling
from spade_envs.models.load import load_model
from spade_envs.play import Player
from spade_envs.players import PLAYER_NAMES, scripted_player
from spade_envs.record import EnvironmentRecord
from spade_envs.sandbox import Sandbox
from spade_envs.sandbox.types import IsolationLevel

Chunk = tuple[Sequence[EnvironmentRecord], PlayConfig, CalibrationConfig, Sampling | None, bool]
"""Records, how to play them, how much, sampling, and whether tools are offered natively where the player takes them."""


class _Seat:
    """An actor with a player in it."""

    def __init__(self, agent: str, isolation: IsolationLevel, options: Mapping[str, Any], seed: int) -> None:
        self._agent, self._isolation, self._options, self._seed = agent, isolation, options, seed

    @cached_property
    def _sandbox(self) -> Sandbox:
        return Sandbox(minimum_isolation=self._isolation)

    @cached_property
    def _player(self) -> ChatModel | Player:
        if self._agent in PLAYER_NAMES:
            return scripted_player(self._agent, sandbox=self._sandbox, seed=self._seed)
        return load_model(self._agent, **self._options)

    def calibrate(self, chunk: Chunk) -> list[Calibration]:
        records, play, config, sampling, native = chunk
        if native and getattr(self._player, "native_tools", False):
            play = replace(play, tools="native")
        return list(calibrate(self._player, records, self._sandbox, play, config, sampling=sampling))


def calibrate_on_cluster(
    agent: str,
    chunks: Iterable[Chunk],
    *,
    workers: int,
    isolation: IsolationLevel = "full",
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
    cpus: float = 1.0,
    gpus: float = 0.0,
) -> Iterator[list[Calibration]]:
    """Yield the calibrations of each chunk, in order; the same as in one process.

    Args:
        agent: a model as ``load_model`` names it, or a scripted player.
        chunks: what to play; taken as workers have room.
        workers: actors, each with a sandbox and a player of its own.
        isolation: what each sandbox must offer.
        options: further arguments of ``load_model``.
        seed: of a scripted player.
        cpus: CPUs of each actor.
        gpus: GPUs of each actor.

    Raises:
        ModelError, SandboxError: if a player or a sandbox cannot be used. ClusterError: if a chunk was lost too often.
    """
    seats = Workers(_Seat, workers, (agent, isolation, dict(options or {}), seed), cpus=cpus, gpus=gpus)
    try:
        yield from seats.map("calibrate", chunks)
    finally:
        seats.close()
