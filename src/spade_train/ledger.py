"""What a cycle leaves in the environment memory: records, plays, retirements. Rank 0 writes for all."""

from __future__ import annotations

from dataclasses import dataclass

from spade_envs.memory import Memory
from spade_envs.record import EnvironmentRecord
from spade_train.cycle import Cycle
from spade_train.retirement import RetirementRules, retirement


@dataclass(frozen=True, slots=True)
class Entry:
    """What one rank's cycle leaves behind; gathered to rank 0."""

    records: list[EnvironmentRecord]
    plays: list[tuple[str, bool, tuple[float, ...]]]  # record id, hinted, returns


def entry_of(cycle: Cycle) -> Entry:
    """Return what a cycle leaves behind."""
    plays = [
        (one.record.id, hinted, returns)
        for one in cycle.played
        for hinted in (False, True)
        if (returns := one.returns(hinted=hinted))
    ]
    records = [one.record for one in cycle.played]  # those of a fixed pool too; known ones are not added again
    return Entry(records, plays)


def write(memory: Memory, entry: Entry, *, run: str, step: int, rules: RetirementRules) -> None:
    """Store the records and plays of one rank's cycle, and retire what has been played enough."""
    for record in entry.records:
        memory.add(record, run=run)
    for key, hinted, returns in entry.plays:
        memory.record_plays(key, returns, hinted=hinted, run=run, step=step)
    for key in dict.fromkeys(key for key, _, _ in entry.plays):
        plain = memory.returns(key, hinted=False)
        if reason := retirement(memory.get(key).statistics, plain, rules):
            memory.retire(key, reason, run=run)
