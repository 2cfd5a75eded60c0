"""Findings and reports: what a probe says of a program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Severity(StrEnum):
    """How a finding bears on admission."""

    REFUSE = "refuse"
    """The environment must not be used: it is broken, or it pays for nothing."""
    WARN = "warn"
    """Usable, but a person or a designer should look."""
    INFO = "info"
    """Worth knowing."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One observation by one probe, with a reason that a designer could act on and its evidence."""

    probe: str
    severity: Severity
    reason: str
    evidence: Mapping[str, Any] = field(default_factory=dict)  # JSON-safe: seed, actions, what came

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe dictionary."""
        return {
            "probe": self.probe,
            "severity": str(self.severity),
            "reason": self.reason,
            "evidence": dict(self.evidence),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Finding:
        """Read what :meth:`to_dict` wrote."""
        return cls(values["probe"], Severity(values["severity"]), values["reason"], values.get("evidence", {}))


@dataclass(frozen=True, slots=True)
class Report:
    """All findings about one program."""

    name: str  # class name, or "" if the program could not be loaded
    findings: tuple[Finding, ...] = ()
    proven: bool = False  # solution() earned the maximal return
    seconds: float = 0.0
    measures: Mapping[str, Any] = field(default_factory=dict)  # e.g. {"turns": 3.2, "probes": {...milliseconds}}

    @property
    def admitted(self) -> bool:
        """Whether no finding refuses the program."""
        return not any(finding.severity is Severity.REFUSE for finding in self.findings)

    @property
    def refusals(self) -> tuple[Finding, ...]:
        """The findings that refuse the program."""
        return tuple(finding for finding in self.findings if finding.severity is Severity.REFUSE)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe dictionary."""
        return {
            "name": self.name,
            "admitted": self.admitted,
            "proven": self.proven,
            "seconds": self.seconds,
            "findings": [finding.to_dict() for finding in self.findings],
            "measures": dict(self.measures),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Report:
        """Read what :meth:`to_dict` wrote."""
        return cls(
            name=values["name"],
            findings=tuple(Finding.from_dict(finding) for finding in values["findings"]),
            proven=values["proven"],
            seconds=values["seconds"],
            measures=values.get("measures", {}),
        )
