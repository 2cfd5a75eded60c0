"""Looking into a tool environment, inside its worker: its own conditions are run here and nowhere else."""

from __future__ import annotations

import hashlib
import json
from opcode import opmap
from types import CodeType
from typing import Any

from spade_envs.contract import ToolEnv
from spade_envs.sandbox.conditions import fixed_reads, mends, unwritten
from spade_envs.sandbox.insides import attributes, cell_content, short_text, walk
from spade_envs.sandbox.inspection import MAX_LEAVES, MAX_LISTED, MAX_VALUE, Scalar
from spade_envs.sandbox.written import writable

_NOT_STATE = {"turn", "turns", "turn_count", "_turn", "max_turns", "rng", "_rng", "_call_history"}
_NOT_STATE |= {"_tools", "_user_messages", "_message_criteria"}
_ASKED = ("brief", "full", "why")


def inspect_tools(environment: Any, source: str, asked: Any) -> str:
    """Return a :class:`~spade_envs.sandbox.inspection.ToolInspection` as JSON.

    Args:
        environment: the instance; its conditions are run.
        source: the program's source.
        asked: "brief" (conditions and digest), "full", or "why" (what conditions miss by, too).
    """
    if asked not in _ASKED:
        raise ValueError(f"unknown question {asked!r}; expected one of {', '.join(_ASKED)}")
    state = getattr(environment, "_state", None)
    current = getattr(environment, "_current_msg", 0)
    answer: dict[str, Any] = {
        "digest": _digest(environment),
        "current": current if type(current) is int and 0 <= current < 1_000 else 0,
    }
    conditions = _listed(getattr(environment, "_message_criteria", None))
    rows = []
    tools = None if asked == "brief" else writable(source)
    for condition in conditions:
        holds, error = ToolEnv._holds(environment, condition)
        row: list[Any] = [None if error else bool(holds), short_text(error), [], []]
        if tools is not None and asked == "full" and not holds:
            row[2] = fixed_reads(environment, condition, tools)
        if tools is not None and asked == "why" and not holds:
            found = unwritten(environment, condition, tools)
            sure = found and " outright" not in found[0]
            row[3] = found if sure else mends(environment, condition, state) or found
        rows.append(row)
    answer["criteria"] = rows
    if asked == "full":
        expected = getattr(environment, "_expected_answer", None)
        answer["expected"] = None if expected is None else short_text(str(expected))
        answer["messages"] = [short_text(str(message), 1_000) for message in _listed(_messages(environment))]
        answer["state"] = _told(state)
        answer["hidden"] = _hidden(environment, conditions)
        answer["methods"] = _methods(type(environment))
    return json.dumps(answer, allow_nan=False)


def _messages(environment: Any) -> Any:
    """The instructions, None if there are none."""
    return getattr(environment, "_user_messages", None)


def _listed(values: Any) -> list[Any]:
    if type(values) is dict:
        values = list(values.values())
    return list(values)[:MAX_LISTED] if type(values) in (list, tuple) else []


def _digest(environment: Any) -> str:
    digest = hashlib.blake2b(digest_size=12)
    for name, value in attributes(environment).items():
        if name not in _NOT_STATE:
            for path, leaf, _ in walk(value, name):
                digest.update(f"{path}={leaf!r:.200}\n".encode("utf-8", "replace"))
    return digest.hexdigest()


def _told(value: Any) -> dict[str, Scalar]:
    told: dict[str, Scalar] = {}
    for path, leaf, scalar in walk(value, ""):
        if scalar and len(told) < MAX_LEAVES:
            told[short_text(path)] = _value(leaf)
    return told


def _value(leaf: Any) -> Scalar:
    if type(leaf) is str:
        return short_text(leaf)
    if type(leaf) is int and abs(leaf) > 2**53:
        return str(leaf)[:MAX_VALUE] if abs(leaf) < 1 << 400 else None
    if type(leaf) is float and (leaf != leaf or leaf in (float("inf"), float("-inf"))):
        return None
    return leaf  # type: ignore[no-any-return]


def _hidden(environment: Any, conditions: list[Any]) -> list[Scalar]:
    """Values that conditions compare with, and those of attributes other than the state."""
    found: dict[tuple[str, Scalar], None] = {}

    def add(value: Any) -> None:
        for _, leaf, scalar in walk(value, ""):
            if scalar and leaf is not None and len(found) < MAX_LEAVES:
                told = _value(leaf)
                found[type(told).__name__, told] = None

    for condition in conditions:
        for cell in getattr(condition, "__closure__", None) or ():
            content = cell_content(cell)
            if type(content) in (str, int, float, bool, list, tuple, dict, set):
                add(content)
        add(list(getattr(condition, "__defaults__", None) or ()))
        code = getattr(condition, "__code__", None)
        if type(code) is CodeType:
            add([constant for constant in code.co_consts if type(constant) in (str, int, float, tuple)])
            add(_small_numbers(code.co_code))
    for name, value in attributes(environment).items():
        if name not in _NOT_STATE and name not in ("_state", "_current_msg"):
            add(value)
    return [value for _, value in found]


def _small_numbers(code: bytes) -> list[int]:
    """Numbers that code holds itself, as it does from Python 3.14."""
    small = opmap.get("LOAD_SMALL_INT")
    return [code[i + 1] for i in range(0, len(code), 2) if code[i] == small]


def _methods(cls: type) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for name in sorted(dir(cls)):
        function: Any = getattr(cls, name, None) if name.startswith("tool_") else None
        while hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        code = getattr(getattr(function, "__func__", function), "__code__", None)
        if type(code) is not CodeType or len(found) == MAX_LISTED:
            continue
        skipped = 0 if type(_raw(cls, name)) is staticmethod else 1
        positional = list(code.co_varnames[skipped : code.co_argcount])
        keywords = list(code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount])
        defaults = len(getattr(function, "__defaults__", None) or ())
        needed = positional[: max(0, len(positional) - defaults)]
        needed += [key for key in keywords if key not in (getattr(function, "__kwdefaults__", None) or {})]
        notes = getattr(function, "__annotations__", None) or {}
        annotations = {
            short_text(key): short_text(note if type(note) is str else getattr(note, "__name__", ""))
            for key, note in notes.items()
        }
        found[short_text(name[5:])] = [
            [short_text(key) for key in (positional + keywords)[:MAX_LISTED]],
            [short_text(key) for key in needed[:MAX_LISTED]],
            bool(code.co_flags & 0x08),
            annotations,
        ]
    return found


def _raw(cls: type, name: str) -> Any:
    return next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)
