"""Results of several resets or steps in a row, by columns: fewer bytes, and a fraction of the work, of single frames.

Both ends gain: what is said once for all rows is not said for each, and a column is checked by a few calls into C.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import repeat
from typing import Any

from spade_envs.sandbox.checks import WireError, infos_of, list_of
from spade_envs.sandbox.types import Outcome, ResetResult, StepResult

MAX_ROWS = 256
"""Rows of one frame."""

_WIDTH = {"reset": 2, "step": 5}
_TEXT, _FLOAT, _BOOL = {str}, {float}, {bool}
# As a named tuple's own constructor, without a call into Python for each row.
_reset_result: Callable[[tuple[Any, ...]], ResetResult] = partial(tuple.__new__, ResetResult)
_step_result: Callable[[tuple[Any, ...]], StepResult] = partial(tuple.__new__, StepResult)
_outcome: Callable[[tuple[Any, ...]], Outcome] = partial(tuple.__new__, Outcome)


def in_columns(name: str) -> bool:
    """Whether results of the operation ``name`` are sent by columns."""
    return name in _WIDTH


def encode(rows: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the payload for ``rows``, each ``[observation, info]`` or ``[observation, reward, …, info]``."""
    return list(zip(*rows, strict=True))


def decode(payload: Any, names: Sequence[str], first: int, limit: int) -> list[Outcome]:
    """Return the outcomes that ``payload`` states for the operations ``names[first]`` and following.

    Raises:
        WireError: the columns are not exactly as documented, or answer something else than what was asked.
    """
    name = names[first]
    if name not in _WIDTH:
        raise WireError(f"{name} is not answered by columns")
    columns = list_of(payload, _WIDTH[name])
    count = len(columns[0]) if type(columns[0]) is list else 0
    if not 0 < count <= MAX_ROWS:
        raise WireError(f"columns have 1 to {MAX_ROWS} rows")
    for column in columns:
        list_of(column, count)
    if first + count > len(names) or names[first : first + count].count(name) != count:
        raise WireError("more answers than questions")
    observations, infos = columns[0], columns[-1]
    if set(map(type, observations)) != _TEXT or max(map(len, observations)) > limit:
        raise WireError(f"expected text of at most {limit} characters")
    infos_of(infos)
    if name == "reset":
        return list(map(_outcome, zip(map(_reset_result, zip(observations, infos, strict=True)), repeat(None))))
    _, rewards, terminated, truncated, _ = columns
    if set(map(type, rewards)) != _FLOAT or not all(map(math.isfinite, rewards)):
        raise WireError("the reward is not a finite float")
    if set(map(type, terminated)) != _BOOL or set(map(type, truncated)) != _BOOL:
        raise WireError("expected a bool")
    return list(map(_outcome, zip(map(_step_result, zip(*columns, strict=True)), repeat(None))))
