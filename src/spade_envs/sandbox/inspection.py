"""The inside of a tool environment as a worker tells it: success conditions, hidden values, methods behind tools."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

Scalar = str | int | float | bool | None

MAX_LEAVES = 300
"""Values of the state, and hidden ones apart from it, that an answer tells."""
MAX_VALUE = 120
"""Characters of one value."""
MAX_LISTED = 64
"""Conditions, messages, methods, parameters."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """One success condition: ``holds`` is None when it raised, which counts as False."""

    holds: bool | None
    error: str = ""
    fixed: tuple[str, ...] = ()  # "full": all that it reads, if no tool's code can change any of it
    mends: tuple[str, ...] = ()  # "why": changes of a value's type or spelling with which it would hold


@dataclass(frozen=True, slots=True)
class ToolMethod:
    """The parameters of a method ``tool_<name>``, the receiver left out."""

    parameters: tuple[str, ...]
    required: tuple[str, ...]
    open: bool  # takes any other argument as well
    annotations: dict[str, str]


@dataclass(frozen=True, slots=True)
class ToolInspection:
    """What was found in one session; no criteria where the program has none under that name."""

    criteria: tuple[Criterion, ...] = ()
    digest: str = ""  # changes when anything but counters and logs changes
    current: int = 0
    messages: tuple[str, ...] = ()  # from here on: "full" only
    expected: str | None = None
    state: dict[str, Scalar] = field(default_factory=dict)
    hidden: tuple[Scalar, ...] = ()
    methods: dict[str, ToolMethod] = field(default_factory=dict)


def read_inspection(text: str) -> ToolInspection:
    """Read the JSON that :func:`spade_envs.sandbox.inspecting.inspect_tools` wrote; the worker is hostile.

    Raises:
        ValueError: for anything else.
    """
    try:
        values = json.loads(text)
        return ToolInspection(
            criteria=tuple(_criterion(row) for row in _array(values["criteria"])),
            digest=_is(values["digest"], str),
            current=_is(values["current"], int),
            messages=tuple(_is(message, str) for message in _array(values.get("messages", []))),
            expected=None if values.get("expected") is None else _is(values["expected"], str),
            state={_is(path, str): _scalar(value) for path, value in _is(values.get("state", {}), dict).items()},
            hidden=tuple(_scalar(value) for value in _is(values.get("hidden", []), list)),
            methods={_is(name, str): _method(row) for name, row in _is(values.get("methods", {}), dict).items()},
        )
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"no inspection: {type(error).__name__}") from None


def _criterion(row: Any) -> Criterion:
    holds, error, fixed, mends = _is(row, list)
    if holds is not None:
        _is(holds, bool)
    reads, changes = (tuple(_is(text, str) for text in _array(values)) for values in (fixed, mends))
    return Criterion(holds, _is(error, str), reads, changes)


def _method(row: Any) -> ToolMethod:
    parameters, required, open_, annotations = _is(row, list)
    notes = {_is(key, str): _is(note, str) for key, note in _is(annotations, dict).items()}
    taken, needed = (tuple(_is(name, str) for name in _array(values)) for values in (parameters, required))
    return ToolMethod(taken, needed, _is(open_, bool), notes)


def _array(value: Any) -> list[Any]:
    found: list[Any] = _is(value, list)
    if len(found) > MAX_LISTED:
        raise TypeError("too long")
    return found


def _is(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise TypeError(kind.__name__)
    return value


def _scalar(value: Any) -> Scalar:
    if value is not None and type(value) not in (str, int, float, bool):
        raise TypeError("no scalar")
    if type(value) is float and (value != value or value in (float("inf"), float("-inf"))):
        raise TypeError("no number")
    return value  # type: ignore[no-any-return]
