"""What a program may return, checked inside the worker, with words that the program's author can act on.

The caller checks everything again when it reads the wire (:mod:`spade_envs.sandbox.wire`); here the point is
a message that names what is wrong, and truncation that stays visible.
"""

from __future__ import annotations

import json
import math
import sys
from math import isfinite
from typing import Any

from spade_envs.sandbox.wire import (
    MAX_ACTIONS,
    MAX_INFO_CHARS,
    MAX_INFO_ITEMS,
    MAX_NAME,
    MAX_SAFE_INTEGER,
    MAX_SCHEMA_DEPTH,
    schema_fault,
)


class BadResult(Exception):
    """A method of the program returned something of the wrong shape or type."""


def type_name(value: Any) -> str:
    """Return the class name of ``value`` without asking the value."""
    return type.__getattribute__(type(value), "__name__")[:MAX_NAME]  # type: ignore[no-any-return]


def clean_text(text: str) -> str:
    """Return ``text`` as valid Unicode: lone surrogates become question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


def shorten(text: str, limit: int) -> str:
    """Return valid Unicode of at most ``limit`` characters; what is left out is said at the end."""
    if len(text) <= limit:
        return clean_text(text)
    marker = f"\n[truncated: {len(text)} characters, limit {limit}]"
    return clean_text(text[: max(0, limit - len(marker))]) + marker[:limit]


def exception_text(error: BaseException, limit: int) -> str:
    """Return what ``str(error)`` says, shortened; runs the program's code, which may return a ``str`` of its own."""
    return shorten(str.__str__(str(error)), limit)


def reset_result(value: Any, limit: int) -> list[Any]:
    """Return ``[observation, info]`` from what ``reset`` returned."""
    if type(value) is not tuple or len(value) != 2:
        raise BadResult(f"reset() must return (observation: str, info: dict), got {_shape(value)}")
    observation, info = value
    return [_observation("reset", observation, limit), _info("reset", info)]


def step_result(value: Any, limit: int) -> list[Any]:
    """Return ``[observation, reward, terminated, truncated, info]`` from what ``step`` returned."""
    if type(value) is not tuple or len(value) != 5:
        raise BadResult(
            f"step() must return (observation: str, reward: float, terminated: bool, truncated: bool, info: dict), "
            f"got {_shape(value)}"
        )
    observation, reward, terminated, truncated, info = value
    if (
        type(observation) is str
        and len(observation) <= limit
        and observation.isascii()
        and type(reward) is float
        and isfinite(reward)
        and type(terminated) is bool
        and type(truncated) is bool
        and type(info) is dict
    ):  # nearly always
        return [observation, reward, terminated, truncated, _info("step", info) if info else {}]
    flags = []
    for name, flag in (("terminated", terminated), ("truncated", truncated)):
        flag = _plain(flag)
        if type(flag) is not bool:
            raise BadResult(f"step() returned {name} of type {type_name(flag)}; it must be True or False")
        flags.append(flag)
    return [_observation("step", observation, limit), _reward(reward), *flags, _info("step", info)]


def hint_result(value: Any, limit: int) -> str | None:
    """Return what ``hint`` returned, shortened; None stays None."""
    if value is None:
        return None
    if type(value) is not str:
        raise BadResult(f"hint() must return str, got {type_name(value)}")
    return shorten(value, limit)


def solution_result(value: Any, limit: int) -> list[str] | None:
    """Return the actions that ``solution`` returned: one string is one action."""
    if value is None:
        return None
    actions = [value] if type(value) is str else list(value) if type(value) in (list, tuple) else None
    if actions is None or any(type(action) is not str for action in actions):
        raise BadResult(f"solution() must return str or a list of str, got {_shape(value)}; use str(...)")
    if len(actions) > MAX_ACTIONS or sum(map(len, actions)) > limit:
        raise BadResult(f"solution() is too long: at most {MAX_ACTIONS} actions and {limit} characters")
    return [clean_text(action) for action in actions]


def tools_result(value: Any, limit: int) -> str | None:
    """Return the tool schemas as JSON text."""
    if value is None:
        return None
    if type(value) not in (list, tuple) or any(type(schema) is not dict for schema in value):
        raise BadResult(f"get_tools() must return a list of dictionaries, got {_shape(value)}")
    try:
        text = clean_text(json.dumps(list(value), allow_nan=False, ensure_ascii=False))
    except (TypeError, ValueError) as error:
        raise BadResult(f"get_tools() is not JSON: {error}") from None
    except RecursionError:
        raise BadResult(f"get_tools() is nested more than {MAX_SCHEMA_DEPTH} deep") from None
    if len(text) > limit:
        raise BadResult(f"get_tools() is too long: {len(text)} characters of JSON, limit {limit}")
    if fault := schema_fault(json.loads(text)):
        raise BadResult(f"get_tools(): {fault}")
    return text


def _shape(value: Any) -> str:
    if type(value) in (tuple, list):
        shown = ", ".join(type_name(item) for item in value[:8])
        return f"{type_name(value)} of {len(value)} ({shown}{', …' if len(value) > 8 else ''})"
    return type_name(value)


def _plain(value: Any) -> Any:
    """Turn NumPy's own scalars into Python's; anything else, subclasses included, is left as it is."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and type(value) in (numpy.bool_, numpy.float64, numpy.float32, numpy.int64, numpy.int32):
        return value.item()
    return value


def _observation(method: str, value: Any, limit: int) -> str:
    if type(value) is not str:
        raise BadResult(f"{method}() returned an observation of type {type_name(value)}; it must be str")
    return shorten(value, limit)


def _reward(value: Any) -> float:
    value = _plain(value)
    if type(value) is not float and type(value) is not int:
        raise BadResult(f"step() returned a reward of type {type_name(value)}; it must be a float")
    try:
        reward = float(value)
    except OverflowError:
        reward = math.inf
    if not math.isfinite(reward):
        raise BadResult(f"step() returned the reward {reward}; it must be finite")
    return reward


def _info(method: str, value: Any) -> dict[str, Any]:
    """Keep what is a JSON scalar under a short string key; the rest is for the program alone."""
    if type(value) is not dict:
        raise BadResult(f"{method}() returned info of type {type_name(value)}; it must be a dict")
    kept: dict[str, Any] = {}
    room = MAX_INFO_CHARS
    for key, item in value.items():
        item = _plain(item)
        if type(key) is not str or len(key) > MAX_NAME or not _scalar(item):
            continue
        room -= len(key) + (len(item) if type(item) is str else 0)
        if room < 0 or len(kept) == MAX_INFO_ITEMS:
            break
        kept[clean_text(key)] = clean_text(item) if type(item) is str else item
    return kept


def _scalar(value: Any) -> bool:
    if type(value) is int:
        return abs(value) <= MAX_SAFE_INTEGER
    if type(value) is float:
        return math.isfinite(value)
    return value is None or type(value) in (bool, str)
