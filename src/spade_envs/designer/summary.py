"""What a run of generation did."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from spade_envs.designer.attempt import Attempt

TOTALS = (
    "admitted", "attempts", "judged", "first_admitted", "repaired", "repair_turns",
    "prompt_tokens", "completion_tokens", "hint_tokens", "without_hint", "cost",
)  # fmt: skip
"""The numbers that a run stores with every round."""

JUDGED = ("admitted", "refused", "no_code")
"""Statuses of replies that say whether the model can write a valid program."""


@dataclass(slots=True)
class GenerateSummary:
    """What a run did, before a resume too; ``seconds`` (by stage) are those of this call."""

    run: str
    count: int = 0  # records wanted
    admitted: int = 0
    attempts: int = 0
    rounds: int = 0
    judged: int = 0  # attempts with a reply that was admitted, refused or held no program; the others only repeat
    first_admitted: int = 0  # of these, admitted at the first reply
    repaired: int = 0  # of these, admitted after a repair
    repair_turns: int = 0
    causes: Counter[str] = field(default_factory=Counter)  # attempts by final cause: "admitted", a probe, …
    first_causes: Counter[str] = field(default_factory=Counter)  # attempts by the cause of their first reply
    prompt_tokens: int = 0
    completion_tokens: int = 0
    hint_tokens: int = 0
    without_hint: int = 0
    cost: float = 0.0  # of the endpoints' answers, where prices are known
    seconds: Counter[str] = field(default_factory=Counter)
    ids: list[str] = field(default_factory=list)  # of the records added by this call
    model_error: str = ""  # why the model last gave no reply, in this call

    @property
    def first_validity(self) -> float | None:
        """Share of the judged attempts that were admitted at the first reply; None before the first one."""
        return self.first_admitted / self.judged if self.judged else None

    @property
    def final_validity(self) -> float | None:
        """Share of the judged attempts that were admitted in the end, repairs included."""
        return (self.first_admitted + self.repaired) / self.judged if self.judged else None

    def count_attempt(self, attempt: Attempt) -> None:
        """Add one attempt, but for what is counted when its record is stored."""
        first = attempt.first
        self.attempts += 1
        self.model_error = attempt.reason if attempt.cause == "model_error" else self.model_error
        self.causes[attempt.cause] += 1
        self.first_causes[first.cause] += 1
        self.judged += any(one.status in JUDGED for one in (*attempt.earlier, attempt))
        self.first_admitted += first.status == "admitted"
        self.repaired += attempt.status == "admitted" and bool(attempt.earlier)
        self.repair_turns += len(attempt.earlier)
        self.prompt_tokens += attempt.prompt_tokens
        self.completion_tokens += attempt.tokens
        self.seconds.update(attempt.seconds)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what a run stored."""
        for name in TOTALS:
            setattr(self, name, state.get(name, 0))
        self.causes, self.first_causes = Counter(state.get("causes", {})), Counter(state.get("first_causes", {}))

    def state(self) -> dict[str, Any]:
        """What a run stores with every round."""
        totals = {name: getattr(self, name) for name in TOTALS}
        return {**totals, "causes": dict(self.causes), "first_causes": dict(self.first_causes)}

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe dictionary."""
        return {
            **dataclasses.asdict(self),
            "causes": dict(self.causes),
            "first_causes": dict(self.first_causes),
            "seconds": dict(self.seconds),
            "first_validity": self.first_validity,
            "final_validity": self.final_validity,
        }

    def timed(self, stage: str) -> _Timed:
        """Return a context that adds the wall-clock time of its block to a stage."""
        return _Timed(self, stage)


def total(states: Iterable[Mapping[str, Any]]) -> GenerateSummary:
    """Return the sums over what several runs stored; states of other kinds of runs do not count."""
    whole = GenerateSummary("")
    for state in states:
        if "judged" not in state:
            continue
        one = GenerateSummary("")
        one.restore(state)
        for name in TOTALS:
            setattr(whole, name, getattr(whole, name) + getattr(one, name))
        whole.causes.update(one.causes)
        whole.first_causes.update(one.first_causes)
    return whole


class _Timed:
    def __init__(self, summary: GenerateSummary, stage: str) -> None:
        self._summary, self._stage = summary, stage

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._summary.seconds[self._stage] += time.perf_counter() - self._start  # type: ignore[assignment]
