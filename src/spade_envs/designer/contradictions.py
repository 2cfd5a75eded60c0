"""New programs against those of the memory: same statement, other answers, and the other way round."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from spade_envs.record import source_id
from spade_envs.validation import Report, ValidationConfig
from spade_envs.validation.contradiction import confirm
from spade_envs.validation.contradiction_index import ContradictionIndex

if TYPE_CHECKING:
    from spade_envs.memory import Memory
    from spade_envs.sandbox import Sandbox


class MemoryContradictions:
    """Fingerprints of a memory's records, from their reports; new records are read when they are first needed."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._index = ContradictionIndex()
        self._position = -1
        self._read: set[str] = set()

    def check(
        self, source: str, report: Report, *, sandbox: Sandbox, allow: Sequence[str], config: ValidationConfig
    ) -> Report:
        """Return ``report`` with a warning for each record that the program contradicts.

        Raises:
            SandboxError: if the sandbox itself fails.
        """
        self._catch_up()
        found = []
        for candidate in self._index.candidates(source_id(source), report.measures):
            try:
                other = self._memory.get(candidate.other)
            except KeyError:
                continue  # rolled back since
            both = sorted({*allow, *other.allow})
            finding = confirm(candidate, source, other.source, sandbox=sandbox, allow=both, config=config)
            found += [finding] if finding else []
        return dataclasses.replace(report, findings=(*report.findings, *found)) if found else report

    def _catch_up(self) -> None:
        position = self._memory.position()
        if position == self._position:
            return
        for identity, _ in self._memory.ids(self._memory.path):
            if identity not in self._read:
                self._read.add(identity)
                self._index.add(identity, self._memory.get(identity).report.get("measures", {}))
        self._position = position
