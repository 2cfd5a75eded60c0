"""Frames between a caller and a worker: 4-byte little-endian length, then msgpack. Nothing is ever unpickled.

A request is three lists: names, sessions and arguments of operations. The answers come in order, in frames
``[status, payload]``: one for each operation, or, with status RUN, one for several resets or steps in a row that went
well, by columns (:mod:`spade_envs.sandbox.columns`). No frame is larger than one operation's worth may be, and the
caller decodes one at a time.

The worker is hostile as far as this module is concerned: whatever it writes becomes an :class:`Outcome` with
exactly the documented types, or a :class:`WireError`.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import Any

import msgpack

from spade_envs.sandbox import columns
from spade_envs.sandbox.checks import (
    MAX_INFO_CHARS,
    MAX_INFO_ITEMS,
    MAX_NAME,
    MAX_SAFE_INTEGER,
    WireError,
    finite,
    flag,
    info,
    list_of,
    text,
)
from spade_envs.sandbox.inspection import ToolInspection, read_inspection
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
    SandboxError,
    StepResult,
)

__all__ = [
    "MAX_INFO_CHARS",
    "MAX_INFO_ITEMS",
    "MAX_NAME",
    "MAX_SAFE_INTEGER",
    "WireError",
]

HEADER = struct.Struct("<I")

OK, RAISED, TIMEOUT, PROTOCOL, POLICY, LOST, BROKEN, SKIPPED, RUN, DYING = range(10)
"""Status of an answer. LOST: no such session; BROKEN: it timed out before; SKIPPED: too many time-outs; RUN: columns of
several; DYING: the worker itself failed, and says why with its last breath."""

MAX_MESSAGE = 2_000
MAX_ACTIONS = 1_000  # of one solution
MAX_REASONS = 50
MAX_SCHEMA_DEPTH = 32
"""Nesting of tool schemas; deeper ones would exhaust the stack of whoever copies or prints them."""
_LARGEST_LINE = 10_000_000


def reply_cap(limits: Limits) -> int:
    """Return how many bytes the answer to one operation may have."""
    return 4 * (limits.max_observation_chars + MAX_INFO_CHARS) + 65_536


def encode_request(operations: Sequence[Operation]) -> bytes:
    """Return one request frame. Lone surrogates in actions are kept: programs have to survive them.

    Raises:
        TypeError: an argument is not made of str, bytes, numbers, lists and dictionaries.
        ValueError: an integer (a seed, say) does not fit into 64 bits.
    """
    try:
        body: bytes = msgpack.packb(list(zip(*operations, strict=True)), unicode_errors="surrogatepass")
    except OverflowError as error:
        raise ValueError(f"integers must fit into 64 bits: {error}") from None
    return HEADER.pack(len(body)) + body


def decode_request(body: bytes) -> list[tuple[str, int, Any]]:
    """Read what :func:`encode_request` wrote, inside the worker."""
    columns = msgpack.unpackb(body, unicode_errors="surrogatepass", strict_map_key=False)
    return list(zip(*columns, strict=True))


def encode_reply(status: int, payload: Any) -> bytes:
    """Return one answer frame, inside the worker."""
    body: bytes = msgpack.packb([status, payload])
    return HEADER.pack(len(body)) + body


def decode_reply(body: bytes, name: str, limits: Limits) -> tuple[int, Outcome]:
    """Return the status and the outcome that ``body`` states for an operation called ``name``.

    Raises:
        WireError: for anything that is not exactly as documented, and nothing else.
    """
    status, (outcome,) = decode_replies(body, (name,), 0, limits)
    return status, outcome


def decode_replies(body: bytes, names: Sequence[str], first: int, limits: Limits) -> tuple[int, list[Outcome]]:
    """Return the status and the outcomes of one frame, for operations called ``names[first]`` and so on.

    Raises:
        WireError: for anything that is not exactly as documented, and nothing else.
    """
    status, payload = _unpack(body)
    if type(status) is not int:
        raise WireError("status is not an integer")
    if status == RUN:
        return OK, columns.decode(payload, names, first, limits.max_observation_chars)
    if status == OK:
        return status, [Outcome(_value(names[first], payload, limits))]
    return status, [Outcome(error=_error(status, payload))]


def decode_hello(body: bytes) -> dict[str, str]:
    """Return the layers of isolation that a new worker reports.

    Raises:
        SandboxError: the worker says why it could not start.
        WireError: it says something else.
    """
    status, payload = _unpack(body)
    if status == DYING:
        raise SandboxError(f"a worker could not start: {text(payload, MAX_MESSAGE)}")
    if status != OK or type(payload) is not dict or len(payload) > MAX_INFO_ITEMS:
        raise WireError("no report of isolation layers")
    for key, value in payload.items():
        text(key, MAX_NAME)
        text(value, MAX_MESSAGE)
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


def _inspection(value: Any, limit: int) -> ToolInspection:
    try:
        return read_inspection(text(value, 4 * limit))
    except ValueError:
        raise WireError("no inspection") from None


def _schemas(value: Any, limit: int) -> list[dict[str, Any]]:
    try:
        schemas = json.loads(text(value, limit), parse_constant=_no_constant)
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
        observation, reward, terminated, truncated, given = list_of(payload, 5)
        return StepResult(text(observation, limit), finite(reward), flag(terminated), flag(truncated), info(given))
    if name == "reset":
        observation, given = list_of(payload, 2)
        return ResetResult(text(observation, limit), info(given))
    if name == "load":
        class_name, has_hint, has_solution, has_tools, description, sees_addresses = list_of(payload, 6)
        return ProgramInfo(
            text(class_name, MAX_NAME),
            flag(has_hint),
            flag(has_solution),
            flag(has_tools),
            text(description, limit),
            flag(sees_addresses),
        )
    if name == "inspect":
        return _inspection(payload, limit)
    if payload is None:
        return [] if name == "tools" else None
    if name == "hint":
        return text(payload, limit)
    if name == "solution":
        if type(payload) is not list or sum(len(text(action, limit)) for action in payload) > limit:
            raise WireError("a solution is a list of actions")
        return payload
    if name == "tools":
        return _schemas(payload, limit)
    raise WireError(f"{name} returns nothing")


def _error(status: int, payload: Any) -> ProgramError:
    if status == RAISED:
        exception, message, line = list_of(payload, 3)
        if type(line) is not int or not 0 <= line <= _LARGEST_LINE:
            raise WireError("no line number")
        return ProgramRaised(text(exception, MAX_NAME), text(message, MAX_MESSAGE), line)
    if status == POLICY:
        if type(payload) is not list or not 0 < len(payload) <= MAX_REASONS:
            raise WireError("a refusal needs reasons")
        reasons = []
        for reason in payload:
            line, column, message = list_of(reason, 3)
            if type(line) is not int or type(column) is not int:
                raise WireError("no line number")
            reasons.append(Reason(line, column, text(message, MAX_MESSAGE)))
        return PolicyViolation(tuple(reasons))
    kinds: dict[int, type[ProgramError]] = {
        TIMEOUT: ProgramTimeout,
        PROTOCOL: ProtocolViolation,
        LOST: ProgramDied,
        BROKEN: ProgramTimeout,
        SKIPPED: ProgramQuarantined,
        DYING: ProgramDied,
    }
    if status not in kinds:
        raise WireError(f"unknown status {status}")
    return kinds[status](text(payload, MAX_MESSAGE))
