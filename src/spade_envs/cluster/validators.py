"""Validation on many machines: each actor has a sandbox of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from spade_envs.cluster.workers import Workers
from spade_envs.sandbox import Sandbox
from spade_envs.sandbox.types import IsolationLevel
from spade_envs.validation import Report, ValidationConfig, validate


class _Prober:
    """An actor with a sandbox in it."""

    def __init__(self, isolation: IsolationLevel, allow: tuple[str, ...], config: ValidationConfig) -> None:
        self._isolation, self._allow, self._config = isolation, allow, config

    @cached_property
    def _sandbox(self) -> Sandbox:
        return Sandbox(minimum_isolation=self._isolation)

    def validate(self, source: str) -> Report:
        return validate(source, sandbox=self._sandbox, allow=self._allow, config=self._config)


class ClusterValidator:
    """Validates sources at actors; what :meth:`submit` was told of is being worked on when :meth:`report` asks."""

    def __init__(
        self,
        workers: int,
        *,
        isolation: IsolationLevel = "full",
        allow: Sequence[str] = (),
        config: ValidationConfig | None = None,
        cpus: float = 1.0,
    ) -> None:
        """Start ``workers`` actors that validate by ``config``, each with a sandbox of at least this isolation.

        Raises:
            ClusterError: if the cluster cannot be used.
        """
        arguments = (isolation, tuple(allow), config or ValidationConfig())
        self._workers = Workers(_Prober, workers, arguments, cpus=cpus)
        self._running: dict[str, Any] = {}
        self._turn = 0

    def submit(self, sources: Iterable[str]) -> None:
        """Start with these sources."""
        for source in sources:
            if source not in self._running:
                self._running[source] = self._workers.submit("validate", source, self._turn)
                self._turn += 1

    def report(self, source: str) -> Report:
        """Return the report of ``source``, which :meth:`submit` may have been told of.

        Raises:
            SandboxError: if a worker's sandbox cannot be used. ClusterError: if the call was lost too often.
        """
        self.submit([source])
        report: Report = self._workers.result(self._running.pop(source))
        return report

    def forget(self) -> None:
        """Drop what nobody asked for."""
        self._running.clear()

    def close(self) -> None:
        """Stop the actors."""
        self._workers.close()
