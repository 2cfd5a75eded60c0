"""What was written and played in a cycle, as records. Their fields are in docs/training.md, "What a run leaves"."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

from spade_envs.play import Episode
from spade_train.cycle import Cycle, Written
from spade_train.rows import Row

Decode = Callable[[Sequence[int]], str]
"""Turns token ids into text, special tokens included."""


def cycle_records(cycle: Cycle, *, step: int, rank: int, decode: Decode, ids: bool = False) -> Iterator[dict[str, Any]]:
    """Yield one JSON-safe record for each program, hint and episode, and each program of an earlier step that was paid.

    Args:
        cycle: what happened.
        step: counted from 1, as in the metrics.
        rank: who did it.
        decode: for the prompts of programs.
        ids: whether to keep the token ids of what was trained.
    """
    rows = {id(row.episode): row for row in cycle.rows if row.episode is not None}
    trained = {id(row) for row in cycle.rows}
    written = {id(one.row) for one in cycle.written}
    place = {"step": step, "rank": rank}
    prompts: dict[tuple[int, ...], str] = {}
    for one in cycle.written:
        asked = tuple(one.row.prompt_ids)
        if asked not in prompts:
            prompts[asked] = decode(asked)
        update = _update(one.row if id(one.row) in trained else None, ids)
        yield {**place, "type": "design", **_design(one, prompts[asked]), **update}
    for one in cycle.paid:
        if id(one.row) not in written:  # written in an earlier step
            update = _update(one.row if id(one.row) in trained else None, ids)
            yield {**place, "type": "late_design", **_paid(one), **update}
    for hint in cycle.hints:
        row = hint.row
        told = {"role": "hint", "group": row.group, "id": hint.played.record.id, "reward": row.reward}
        told["reason"] = hint.reason
        said = {"prompt": decode(row.prompt_ids), "reply": decode(row.completion_ids), "tokens": row.tokens}
        yield {**place, "type": "hint", **told, **said, **_update(row if id(row) in trained else None, ids)}
    for played in cycle.played:
        for hinted, episodes in ((False, played.plain), (True, played.hinted)):
            for number, episode in enumerate(episodes):
                yield {
                    **place,
                    "type": "episode",
                    "hinted": hinted,
                    "fresh": played.fresh,
                    "number": number,
                    **episode.to_dict(),
                    **_episode(episode, played.group, rows.get(id(episode)), ids),
                }


def readable(record: dict[str, Any]) -> bool:
    """Whether a record is among those to be read: programs, and the first plain and hinted episode of each."""
    return bool(record["type"] == "design" or (record["type"] == "episode" and record["number"] == 0))


def mask_runs(mask: Sequence[int]) -> list[int]:
    """Return the lengths of the runs of a mask, in turn of sampled (1) and given (0) tokens, sampled ones first.

    >>> mask_runs([1, 1, 0, 1])
    [2, 1, 1]
    >>> mask_runs([0, 1])
    [0, 1, 1]
    """
    runs = [(value, len(list(group))) for value, group in groupby(mask)]
    lengths = [length for _, length in runs]
    return [0, *lengths] if runs and not runs[0][0] else lengths


def _update(row: Row | None, ids: bool) -> dict[str, Any]:
    """What the update saw of a row; without one, nothing was trained."""
    if row is None:
        return {"advantage": None, "mask_runs": []}
    kept = {"prompt_ids": list(row.prompt_ids), "completion_ids": list(row.completion_ids)} if ids else {}
    return {"advantage": row.advantage, "mask_runs": mask_runs(row.mask), **kept}


def _design(one: Written, prompt: str) -> dict[str, Any]:
    attempt, record = one.attempt, one.attempt.record
    played = one.played.record if one.played is not None else record
    return {
        **_paid(one),
        "skill": attempt.skill,
        "document": record.document_id if record else attempt.document_id,
        "status": str(attempt.status),
        "cause": attempt.cause or str(attempt.status),
        "reason": attempt.reason,
        "id": record.id if record else "",
        "name": record.name if record else "",
        "hint": played.hint if played else "",
        "source": attempt.source,
        "prompt": prompt,
        "reply": attempt.raw,
    }


def _paid(one: Written) -> dict[str, Any]:
    """What a program earned; reward and returns are not known before its window has ended."""
    return {
        "role": "designer",
        "group": one.row.group,
        "id": one.environment,
        "reward": one.row.reward,
        "plain": list(one.outcome.plain),
        "hinted": list(one.outcome.hinted),
        "copies": one.outcome.copies,
        "tokens": one.row.tokens,
    }


def _episode(episode: Episode, group: str, row: Row | None, ids: bool) -> dict[str, Any]:
    reward = row.reward if row is not None else None
    return {"role": "agent", "group": group, "id": episode.task.key, "reward": reward, **_update(row, ids)}
