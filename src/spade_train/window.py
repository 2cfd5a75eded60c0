"""One set of environments over the rollouts in which it is played, and the designer's rows that wait for its end.

With windows of one rollout everything is paid at once. With ``k`` of them environments are written in the first
rollout and played plain in the ``k - 1`` that follow; the designer's rows are paid by the win rate over all ``k``
and trained in the first rollout of the next window, ``k`` updates after they were sampled.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from spade_envs.record import EnvironmentRecord
from spade_train.cycle import Played, Written
from spade_train.rewards import DesignOutcome, Pay, designer_reward, moving_average, win_rate
from spade_train.rows import Row

_QUARANTINE = "quarantined:"  # as errors of episodes begin
_TIMEOUTS = ("timeout:", _QUARANTINE)
_TOO_MUCH = "resources"  # the probe that refuses programs that run too long
_GONE = "the program could not be opened again"


@dataclass(slots=True)
class Standing:
    """One environment of the window and how it was played so far."""

    record: EnvironmentRecord
    fresh: bool
    rollouts: list[tuple[float, ...]] = field(default_factory=list)  # plain returns of each
    hinted: tuple[float, ...] = ()
    errors: list[str] = field(default_factory=list)


Rates = dict[str, list[float]]
"""Win rates of the environments that were written in a window, by skill."""


class Window:
    """The environments of a window and what waits to be paid. Part of a checkpoint, on each rank its own.

    The moving averages are those of all ranks: ``gather`` returns every rank's win rates, and is called once by each
    :meth:`settle`. None: there is one rank.
    """

    def __init__(self) -> None:
        self.gather: Callable[[Rates], list[Rates]] | None = None
        self.rollouts = 0  # played so far
        self.environments: dict[str, Standing] = {}
        self.pending: list[Written] = []
        self.fast: dict[str, float] = {}  # moving averages of the skills' win rates
        self.slow: dict[str, float] = {}

    def begin(self, written: Sequence[Written]) -> None:
        """Start a window with these replies; the one before must have been settled."""
        self.rollouts, self.environments, self.pending = 0, {}, list(written)

    def carried(self) -> list[tuple[EnvironmentRecord, bool]]:
        """Return the environments to play again, each with whether it was written in this window."""
        return [(one.record, one.fresh) for one in self.environments.values() if not one.errors]

    def add(self, played: Sequence[Played]) -> None:
        """Note the plays of one more rollout."""
        self.rollouts += 1
        for one in played:
            standing = self.environments.setdefault(one.record.id, Standing(one.record, one.fresh))
            standing.record = one.record  # with the hint that was written for it
            standing.rollouts.append(one.returns(hinted=False))
            standing.hinted += one.returns(hinted=True)
            standing.errors += one.errors
        seen = {one.record.id for one in played}
        for key, standing in self.environments.items():
            if key not in seen and not standing.errors:
                standing.errors.append(_GONE)

    def settle(self, pay: Pay, *, ended: bool) -> list[Written]:
        """Pay the designer for the window and return what was paid; collective where there is ``gather``.

        Args:
            pay: how.
            ended: whether a new window is about to begin; else the last rollout has just been played, and its update
                is still to come.
        """
        copies = Counter(one.environment for one in self.pending if one.environment)
        self._average(pay, set(copies))
        for one in self.pending:
            one.outcome = self._outcome(one, copies[one.environment])
            one.row.reward = designer_reward(pay, one.outcome)
            one.row.age = self.rollouts - (not ended)
        paid, self.pending = self.pending, []
        return paid

    def _outcome(self, one: Written, copies: int) -> DesignOutcome:
        standing = self.environments.get(one.environment)
        if standing is None:
            status = str(one.attempt.status)
            return DesignOutcome(
                "refused" if status == "admitted" else status, timed_out=one.attempt.cause == _TOO_MUCH
            )
        rollouts = tuple(standing.rollouts)
        return DesignOutcome(
            "failed" if standing.errors else "admitted",
            rollouts,
            standing.hinted or rollouts[0],  # no hint: nothing that a hint could have gained
            timed_out=any(error.startswith(_TIMEOUTS) for error in standing.errors),
            quarantined=any(error.startswith(_QUARANTINE) for error in standing.errors),
            copies=copies,
            slow=self.slow.get(one.row.group),
        )

    def _average(self, pay: Pay, keys: set[str]) -> None:
        """Bring the moving averages of the skills up to date with the environments written in this window."""
        rates: Rates = defaultdict(list)
        for key in sorted(keys & self.environments.keys()):
            standing = self.environments[key]
            if not standing.errors:
                returns = [value for rollout in standing.rollouts for value in rollout]
                rates[standing.record.skill].append(win_rate(returns))
        everyone = [rates] if self.gather is None else self.gather(dict(rates))
        for skill in dict.fromkeys(skill for one in everyone for skill in one):
            mean = fmean(value for one in everyone for value in one.get(skill, ()))
            self.fast[skill] = moving_average(self.fast.get(skill), mean, pay.fast_rate)
            self.slow[skill] = moving_average(self.slow.get(skill), mean, pay.slow_rate)

    def figures(self) -> dict[str, float]:
        """Return the mean gap of the fast and slow averages, and of the slow ones themselves, over the skills."""
        if not self.slow:
            return {}
        gaps = [self.fast[skill] - self.slow[skill] for skill in self.slow]
        return {"skill/fast_minus_slow": fmean(gaps), "skill/slow_win_rate": fmean(self.slow.values())}

    def state_dict(self) -> dict[str, Any]:
        """Return the JSON-safe state that :meth:`load_state_dict` reads back."""
        return {
            "rollouts": self.rollouts,
            "environments": [_standing_to_dict(one) for one in self.environments.values()],
            "pending": [_written_to_dict(one) for one in self.pending],
            "fast": dict(self.fast),
            "slow": dict(self.slow),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go back to what :meth:`state_dict` returned."""
        standings = [_standing_from_dict(one) for one in state["environments"]]
        self.rollouts = int(state["rollouts"])
        self.environments = {one.record.id: one for one in standings}
        self.pending = [_written_from_dict(one) for one in state["pending"]]
        self.load_averages(state)

    def load_averages(self, state: Mapping[str, Any]) -> None:
        """Take the moving averages alone from what :meth:`state_dict` returned."""
        self.fast, self.slow = dict(state["fast"]), dict(state["slow"])


def _standing_to_dict(one: Standing) -> dict[str, Any]:
    return {
        "record": one.record.to_dict(),
        "fresh": one.fresh,
        "rollouts": [list(returns) for returns in one.rollouts],
        "hinted": list(one.hinted),
        "errors": list(one.errors),
    }


def _standing_from_dict(values: Mapping[str, Any]) -> Standing:
    return Standing(
        EnvironmentRecord.from_dict(values["record"]),
        bool(values["fresh"]),
        [tuple(returns) for returns in values["rollouts"]],
        tuple(values["hinted"]),
        list(values["errors"]),
    )


def _written_to_dict(one: Written) -> dict[str, Any]:
    """Keep what pay, metrics and transcripts need of a reply."""
    attempt = one.attempt
    return {
        "row": one.row.to_dict(),
        "environment": one.environment,
        "attempt": {
            name: getattr(attempt, name)
            for name in ("skill", "status", "document_id", "source", "reason", "cause", "tokens")
        },
        "record": attempt.record.to_dict() if attempt.record else None,
    }


def _written_from_dict(values: Mapping[str, Any]) -> Written:
    from spade_envs.designer.attempt import Attempt

    record = EnvironmentRecord.from_dict(values["record"]) if values["record"] else None
    return Written(
        Row.from_dict(values["row"]), Attempt(**values["attempt"], record=record), environment=values["environment"]
    )
