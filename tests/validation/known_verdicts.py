"""Programs whose verdict is known: one planted fault each, or sound.

A faulty program begins with comments that are taken off before it is judged::

    # kind: leak, base64         what was planted: a group, and how
    # verdict: refuse            what must result: refuse, warn (admitted with a warning), or admitted
    # probe: leak                the probes that may find it
    # needs: judge               only where running the program cannot tell: what would
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from spade_envs.validation import Report, Severity

DATA = Path(__file__).parent.parent / "data" / "validation"
UNPROVEN = {"unproven_market", "unproven_haggling", "tictactoe", "blackjack"}
"""Sound programs without a ``solution()`` that wins on every seed."""

_HEADER = re.compile(r"# (kind|verdict|probe|needs): (.*)\n")


@dataclass(frozen=True, slots=True)
class Sample:
    """One program, what was planted in it (nothing: sound), and what must result."""

    name: str
    source: str
    kind: str = "sound"
    verdict: str = "admitted"
    probes: frozenset[str] = frozenset()
    needs: str = ""

    @property
    def group(self) -> str:
        """The kind without how."""
        return self.kind.partition(",")[0]

    @property
    def faulty(self) -> bool:
        """Whether a fault was planted."""
        return self.kind != "sound"

    def result(self, report: Report) -> str:
        """What came: ``refuse``, ``warn`` (by a probe that may find the fault), or ``admitted``."""
        if not report.admitted:
            return "refuse"
        warned = {finding.probe for finding in report.findings if finding.severity is Severity.WARN}
        return "warn" if warned & self.probes else "admitted"

    def right(self, report: Report) -> bool:
        """Whether the verdict is what it must be, by a probe that may give it."""
        if not self.faulty:
            return report.admitted
        found = {finding.probe for finding in report.refusals}
        return self.result(report) == self.verdict and (self.verdict != "refuse" or bool(found & self.probes))


def read_sample(path: Path) -> Sample:
    """Read a program and its header.

    Raises:
        ValueError: if a faulty program does not say what is wrong with it.
    """
    text = path.read_text(encoding="utf-8")
    if path.parent.name == "sound":
        return Sample(path.stem, text)
    values: dict[str, str] = {}
    while match := _HEADER.match(text):
        values[match[1]] = match[2].strip()
        text = text[match.end() :]
    if not {"kind", "verdict", "probe"} <= values.keys() or values["verdict"] not in ("refuse", "warn", "admitted"):
        raise ValueError(f"expected comments '# kind:', '# verdict:' and '# probe:' at the top of {path}")
    probes = frozenset(values["probe"].split(", "))
    return Sample(path.stem, text, values["kind"], values["verdict"], probes, values.get("needs", ""))


def truth_set() -> list[Sample]:
    """All programs, the faulty ones first."""
    return [read_sample(path) for folder in ("faulty", "sound") for path in sorted((DATA / folder).glob("*.py"))]
