"""Exact-type checks of what a worker sent, on the caller's side. Everything that fails is a :class:`WireError`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from typing import Any

MAX_NAME = 200
MAX_INFO_CHARS = 16_384  # keys and values together
MAX_INFO_ITEMS = 64
MAX_SAFE_INTEGER = 2**53

_NUMBERS, _TEXT, _DICT = {int, float, bool}, {str}, {dict}


class WireError(Exception):
    """A worker sent something that no honest worker sends."""


def text(value: Any, limit: int) -> str:
    """Return ``value``, a string of at most ``limit`` characters."""
    if type(value) is not str or len(value) > limit:
        raise WireError(f"expected text of at most {limit} characters")
    return value


def flag(value: Any) -> bool:
    """Return ``value``, a bool."""
    if type(value) is not bool:
        raise WireError("expected a bool")
    return value


def list_of(value: Any, length: int) -> list[Any]:
    """Return ``value``, a list of ``length`` items."""
    if type(value) is not list or len(value) != length:
        raise WireError(f"expected a list of {length}")
    return value


def finite(value: Any) -> float:
    """Return ``value``, a finite float."""
    if type(value) is not float or not math.isfinite(value):
        raise WireError("the reward is not a finite float")
    return value


def info(value: Any) -> dict[str, Any]:
    """Return ``value``, a dictionary of scalars."""
    if type(value) is not dict:
        raise WireError("info is not a dictionary")
    room = MAX_INFO_CHARS
    for key, item in value.items():
        if type(key) is not str or len(key) > MAX_NAME:
            raise WireError(f"expected text of at most {MAX_NAME} characters")
        room -= len(key)
        kind = type(item)
        if kind is str:
            room -= len(item)
        elif kind is int:
            if not -MAX_SAFE_INTEGER <= item <= MAX_SAFE_INTEGER:
                raise WireError("integer in info is too large")
        elif kind is float:
            if not math.isfinite(item):
                raise WireError("number in info is not finite")
        elif item is not None and kind is not bool:
            raise WireError("info holds more than scalars")
    if room < 0:
        raise WireError("info is too long")
    return value


def infos_of(values: Sequence[Any]) -> Sequence[dict[str, Any]]:
    """Return ``values``, dictionaries of scalars; small ones that hold only numbers are checked all at once."""
    if set(map(type, values)) != _DICT:
        raise WireError("info is not a dictionary")
    items = list(chain.from_iterable(map(dict.values, values)))
    if not items:
        return values
    keys = list(chain.from_iterable(values))
    if (
        set(map(type, items)) <= _NUMBERS
        and all(map(math.isfinite, items))
        and min(items) >= -MAX_SAFE_INTEGER
        and max(items) <= MAX_SAFE_INTEGER
        and set(map(type, keys)) == _TEXT
        and max(map(len, keys)) * max(map(len, values)) <= MAX_NAME
    ):
        return values
    for value in values:
        info(value)
    return values
