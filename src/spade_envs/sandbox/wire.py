"""Frames between a caller and a worker: 4-byte little-endian length, then msgpack. Nothing is ever unpickled.

A request is a list of ``[name, session, argument]``. The answer is one small frame for each operation,
``[status, payload]``, in order, so that the caller never decodes more than one operation's worth at a time.
The worker is hostile as far as this module is concerned: whatever it writes becomes an :class:`Outcome` with
exactly the documented types, or a :class:`WireError`.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Sequence
from typing import Any

import msgpack

from spade_envs.sandbox.types import (
    Limits,
    Operation,
    Outcome,
    PolicyViolation,
    ProgramDied,
    ProgramError,
    ProgramInfo,
    ProgramQuarantined,
    ProgramRaised,
    ProgramTimeout,
    ProtocolViolation,
    Reason,
    ResetResult,
    StepResult,
)

HEADER = struct.Struct("<I")

OK, RAISED, TIMEOUT, PROTOCOL, POLICY, LOST, BROKEN, SKIPPED = range(8)
"""Status of an answer. LOST: no such session; BROKEN: it timed out before; SKIPPED: too many time-outs."""

MAX_NAME = 200
MAX_MESSAGE = 2_000
MAX_INFO_ITEMS = 64
MAX_INFO_CHARS = 16_384  # keys and values together
MAX_ACTIONS = 1_000  # of one solution
MAX_SAFE_INTEGER = 2**53
MAX_REASONS = 50
MAX_SCHEMA_DEPTH = 32
"""Nesting of tool schemas; deeper ones would exhaust the stack of whoever copies or prints them."""
_LARGEST_LINE = 10_000_000


class WireError(Exception):
    """A worker sent something that no honest worker sends."""


def reply_cap(limits: Limits) -> int:
    """Return how many bytes the answer to one operation may have."""
    return 4 * (limits.max_observation_chars + MAX_INFO_CHARS) + 65_536


def encode_request(operations: Sequence[Operation | tuple[Any, ...]]) -> bytes:
    """Return one request frame. Lone surrogates in actions are kept: programs have to survive them.

    Raises:
        TypeError: an argument is not made of str, bytes, numbers, lists and dictionaries.
        ValueError: an integer (a seed, say) does not fit into 64 bits.
    """
    try:
        body: bytes = msgpack.packb([list(operation) for operation in operations], unicode_errors="surrogatepass")
    except OverflowError as error:
        raise ValueError(f"integers must fit into 64 bits: {error}") from None
    return HEADER.pack(len(body)) + body


def decode_request(body: bytes) -> list[list[Any]]:
    """Read what :func:`encode_request` wrote, inside the worker."""
    operations: list[list[Any]] = msgpack.unpackb(body, unicode_errors="surrogatepass", strict_map_key=False)
    return operations


def encode_reply(status: int, payload: Any) -> bytes:
    """Return one answer frame, inside the worker."""
    body: bytes = msgpack.packb([status, payload])
    return HEADER.pack(len(body)) + body


def decode_reply(body: bytes, name: str, limits: Limits) -> tuple[int, Outcome]:
    """Return the status and the outcome that ``body`` states for an operation called ``name``.

    Raises:
        WireError: for anything that is not exactly as documented, and nothing else.
    """
    status, payload = _unpack(body)
    if type(status) is not int:
        raise WireError("status is not an integer")
    if status == OK:
        return status, Outcome(_value(name, payload, limits))
    return status, Outcome(error=_error(status, payload))


def decode_hello(body: bytes) -> dict[str, str]:
    """Return the layers of isolation that a new worker reports."""
    status, payload = _unpack(body)
    if status != OK or type(payload) is not dict or len(payload) > MAX_INFO_ITEMS:
        raise WireError("no report of isolation layers")
    for key, value in payload.items():
        _text(key, MAX_NAME)
        _text(value, MAX_MESSAGE)
    return payload


def _unpack(body: bytes) -> list[Any]:
    size = len(body)
    try:
        message = msgpack.unpackb(
            body,
            strict_map_key=True,
            max_str_len=size,
            max_bin_len=0,
            max_ext_len=0,
            max_array_len=MAX_ACTIONS,
            max_map_len=MAX_INFO_ITEMS,
        )
    except Exception as error:
        raise WireError(f"not a frame: {type(error).__name__}") from None
    if type(message) is not list or len(message) != 2:
        raise WireError("an answer is [status, payload]")
    return message


def _text(value: Any, limit: int) -> str:
    if type(value) is not str or len(value) > limit:
        raise WireError(f"expected text of at most {limit} characters")
    return value


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise WireError("expected a bool")
    return value


def _list(value: Any, length: int) -> list[Any]:
    if type(value) is not list or len(value) != length:
        raise WireError(f"expected a list of {length}")
    return value


def _info(value: Any) -> dict[str, Any]:
    if type(value) is not dict:
        raise WireError("info is not a dictionary")
    room = MAX_INFO_CHARS
    for key, item in value.items():
        room -= len(_text(key, MAX_NAME))
        if type(item) is str:
            room -= len(item)
        elif type(item) is int:
            if abs(item) > MAX_SAFE_INTEGER:
                raise WireError("integer in info is too large")
        elif type(item) is float:
            if not math.isfinite(item):
                raise WireError("number in info is not finite")
        elif item is not None and type(item) is not bool:
            raise WireError("info holds more than scalars")
    if room < 0:
        raise WireError("info is too long")
    return value


def _schemas(value: Any, limit: int) -> list[dict[str, Any]]:
    try:
        schemas = json.loads(_text(value, limit), parse_constant=_no_constant)
        json.dumps(schemas, ensure_ascii=False, allow_nan=False).encode()  # no 1e999, no lone surrogates
    except (ValueError, RecursionError):
        raise WireError("tool schemas are not JSON") from None
    if type(schemas) is not list or any(type(schema) is not dict for schema in schemas):
        raise WireError("tool schemas are not a list of objects")
    if fault := schema_fault(schemas):
        raise WireError(fault)
    return schemas


def schema_fault(schemas: list[dict[str, Any]]) -> str:
    """Return what is wrong with the shape of decoded tool schemas, "" if nothing is."""
    for schema in schemas:
        if type(schema.get("function", schema)) is not dict:
            return 'the "function" of a tool schema must be an object'
    level: list[Any] = [schemas]
    for _ in range(MAX_SCHEMA_DEPTH):
        level = [
            inner
            for item in level
            for inner in (item.values() if type(item) is dict else item)
            if type(inner) in (dict, list)
        ]
        if not level:
            return ""
    return f"tool schemas are nested more than {MAX_SCHEMA_DEPTH} deep"


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _value(name: str, payload: Any, limits: Limits) -> Any:
    limit = limits.max_observation_chars
    if name == "step":
        observation, reward, terminated, truncated, info = _list(payload, 5)
        if type(reward) is not float or not math.isfinite(reward):
            raise WireError("the reward is not a finite float")
        return StepResult(_text(observation, limit), reward, _flag(terminated), _flag(truncated), _info(info))
    if name == "reset":
        observation, info = _list(payload, 2)
        return ResetResult(_text(observation, limit), _info(info))
    if name == "load":
        class_name, has_hint, has_solution, has_tools, description = _list(payload, 5)
        return ProgramInfo(
            _text(class_name, MAX_NAME),
            _flag(has_hint),
            _flag(has_solution),
            _flag(has_tools),
            _text(description, limit),
        )
    if payload is None:
        return [] if name == "tools" else None
    if name == "hint":
        return _text(payload, limit)
    if name == "solution":
        if type(payload) is not list or sum(len(_text(action, limit)) for action in payload) > limit:
            raise WireError("a solution is a list of actions")
        return payload
    if name == "tools":
        return _schemas(payload, limit)
    raise WireError(f"{name} returns nothing")


def _error(status: int, payload: Any) -> ProgramError:
    if status == RAISED:
        exception, message, line = _list(payload, 3)
        if type(line) is not int or not 0 <= line <= _LARGEST_LINE:
            raise WireError("no line number")
        return ProgramRaised(_text(exception, MAX_NAME), _text(message, MAX_MESSAGE), line)
    if status == POLICY:
        if type(payload) is not list or not 0 < len(payload) <= MAX_REASONS:
            raise WireError("a refusal needs reasons")
        reasons = []
        for reason in payload:
            line, column, message = _list(reason, 3)
            if type(line) is not int or type(column) is not int:
                raise WireError("no line number")
            reasons.append(Reason(line, column, _text(message, MAX_MESSAGE)))
        return PolicyViolation(tuple(reasons))
    kinds: dict[int, type[ProgramError]] = {
        TIMEOUT: ProgramTimeout,
        PROTOCOL: ProtocolViolation,
        LOST: ProgramDied,
        BROKEN: ProgramTimeout,
        SKIPPED: ProgramQuarantined,
    }
    if status not in kinds:
        raise WireError(f"unknown status {status}")
    return kinds[status](_text(payload, MAX_MESSAGE))
