"""Imported programs against all that a memory holds: same statement, other answers, and the other way round."""

from __future__ import annotations

from collections.abc import Sequence

from spade_envs.memory import Memory
from spade_envs.memory.transfer import read_stored
from spade_envs.record import EnvironmentRecord, source_id
from spade_envs.sandbox import Sandbox
from spade_envs.validation import Finding, Report, ValidationConfig
from spade_envs.validation.contradiction import confirm
from spade_envs.validation.contradiction_index import ContradictionIndex


class Contradictions:
    """Fingerprints of the memory's records: read once, then kept up with what the import adds."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._index: ContradictionIndex | None = None

    def add(self, record: EnvironmentRecord) -> None:
        """Let a record that was just stored count."""
        self._ready().add(record.id, record.report.get("measures", {}))

    def find(
        self, source: str, report: Report, *, sandbox: Sandbox, allow: Sequence[str], config: ValidationConfig
    ) -> list[Finding]:
        """Return a warning for each record that the program contradicts, tried in the sandbox.

        Raises:
            SandboxError: if the sandbox itself fails.
        """
        found = []
        for candidate in self._ready().candidates(source_id(source), report.measures):
            other = self._memory.get(candidate.other)
            both = sorted({*allow, *other.allow})
            finding = confirm(candidate, source, other.source, sandbox=sandbox, allow=both, config=config)
            found += [finding] if finding else []
        return found

    def _ready(self) -> ContradictionIndex:
        if self._index is None:
            self._index = ContradictionIndex()
            for stored in read_stored(self._memory, archived=None):
                self._index.add(stored.record.id, stored.record.report.get("measures", {}))
        return self._index
