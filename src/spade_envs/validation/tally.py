"""Counting reports of a pool, without keeping them."""

from __future__ import annotations

from collections import Counter

from spade_envs.validation.finding import Report, Severity


class Tally:
    """How many programs were admitted, and how many each probe refused or warned of."""

    def __init__(self) -> None:
        self.admitted = self.refused = self.proven = 0
        self.refusals: Counter[str] = Counter()
        self.warnings: Counter[str] = Counter()
        self._examples: dict[str, str] = {}

    def add(self, label: str, report: Report) -> None:
        """Count one report; a probe counts once for each program."""
        self.admitted += report.admitted
        self.refused += not report.admitted
        self.proven += report.proven
        refusing = {finding.probe for finding in report.refusals}
        warning = {finding.probe for finding in report.findings if finding.severity is Severity.WARN} - refusing
        self.refusals.update(refusing)
        self.warnings.update(warning)
        for probe in refusing:
            self._examples.setdefault(probe, label)

    @property
    def total(self) -> int:
        """Programs counted."""
        return self.admitted + self.refused

    def table(self) -> str:
        """The reasons in columns, the commonest first: probe, programs refused, warned, the first one refused."""
        probes = sorted(
            self.refusals | self.warnings, key=lambda probe: (-self.refusals[probe], -self.warnings[probe], probe)
        )
        if not probes:
            return ""
        wide = max(len("reason"), *map(len, probes))
        lines = [f"{'reason':{wide}}  refused  share  warned  first refused"]
        for probe in probes:
            share = self.refusals[probe] / self.total
            line = f"{probe:{wide}}  {self.refusals[probe]:7}  {share:5.1%}  {self.warnings[probe]:6}  "
            lines.append((line + self._examples.get(probe, "")).rstrip())
        return "\n".join(lines)

    def summary(self) -> str:
        """One line: how many were admitted and refused, and why."""
        words = ", ".join(f"{probe} {count}" for probe, count in self.refusals.most_common())
        return f"{self.admitted} admitted, {self.refused} refused" + (f" ({words})" if words else "")
