"""What goes wrong in self-play, told from the metrics. Pure functions of a history of ``metrics.jsonl`` lines.

:func:`alarms` says which alarms hold at the end of a history; each has a cause in plain language, with the figures
that raised it, and what to do. Thresholds are meant to be far from a healthy run: an alarm is worth a look.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any, Literal

Severity = Literal["warning", "critical"]
Line = Mapping[str, Any]

WINDOW = 5
"""Values over which most alarms look, and the fewest that they need."""

_RECENT = 16  # cycles between two values of a metric, at most


class History:
    """The lines of ``metrics.jsonl`` up to now, oldest first."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = lines

    def values(self, name: str) -> list[float]:
        """Return the values of a metric where it was logged."""
        return [float(line[name]) for line in self.lines if name in line]

    def last(self, name: str, count: int = WINDOW) -> list[float]:
        """Return the latest ``count`` values; [] if there are fewer, or the latest is of long ago.

        Not every line has every metric: programs may be written only once in several cycles.
        """
        if not any(name in line for line in self.lines[-_RECENT:]):
            return []
        values = [float(line[name]) for line in self.lines[-_RECENT * count :] if name in line]
        return values[-count:] if len(values) >= count else []

    def mean(self, name: str, count: int = WINDOW) -> float | None:
        """Return the mean of :meth:`last`, None where that has no values."""
        values = self.last(name, count)
        return fmean(values) if values else None

    def share(self, names: Sequence[str], total: str, count: int = WINDOW) -> float | None:
        """Return what part of all metrics that begin with ``total`` ``names`` are, over ``count`` lines."""
        lines = [line for line in self.lines[-_RECENT * count :] if any(name.startswith(total) for name in line)][
            -count:
        ]
        if len(lines) < count:
            return None
        everything = sum(float(v) for line in lines for name, v in line.items() if name.startswith(total))
        return sum(float(line.get(name, 0.0)) for line in lines for name in names) / everything if everything else None


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something that is worth a look."""

    name: str
    severity: Severity
    step: int
    cause: str  # with the figures
    advice: str

    def __str__(self) -> str:
        return f"{self.severity} at step {self.step}: {self.name}: {self.cause}. {self.advice}"

    def to_dict(self) -> dict[str, Any]:
        """Return the line of ``alarms.jsonl``."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Rule:
    """When an alarm is raised: ``check`` gives its cause, "" while all is well."""

    name: str
    severity: Severity
    check: Callable[[History], str]
    advice: str


def alarms(lines: Sequence[Line], rules: Sequence[Rule] | None = None) -> list[Alarm]:
    """Return the alarms that hold at the end of ``lines``, the critical ones first.

    Args:
        lines: of ``metrics.jsonl``, oldest first.
        rules: :data:`spade_train.alarm_rules.RULES` if None.
    """
    from spade_train.alarm_rules import RULES

    if not lines:
        return []
    history, step = History(lines), int(lines[-1].get("step", len(lines)))
    held = [
        Alarm(rule.name, rule.severity, step, cause, rule.advice)
        for rule in (RULES if rules is None else rules)
        if (cause := rule.check(history))
    ]
    return sorted(held, key=lambda alarm: alarm.severity != "critical")
