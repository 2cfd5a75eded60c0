"""Why a success condition does not hold: what it reads that no tool changes, by which type or spelling it misses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import CodeType, ModuleType
from typing import Any

from spade_envs.contract import ToolEnv
from spade_envs.sandbox.insides import attributes, cell_content, containers, short_text, walk
from spade_envs.sandbox.inspection import MAX_LISTED
from spade_envs.sandbox.written import Writable


class _Seen(dict[Any, Any]):
    """The state's outermost dictionary, noting which of its keys are asked for."""

    def __init__(self, values: dict[Any, Any]) -> None:
        super().__init__(values)
        self.asked: set[str] = set()
        self.whole = False

    def __getitem__(self, key: Any) -> Any:
        self.asked.add(str(key))
        return super().__getitem__(key)

    def __contains__(self, key: Any) -> bool:
        self.asked.add(str(key))
        return super().__contains__(key)

    def get(self, key: Any, default: Any = None) -> Any:
        self.asked.add(str(key))
        return super().get(key, default)

    def __iter__(self) -> Iterator[Any]:
        self.whole = True
        return super().__iter__()

    def __eq__(self, other: object) -> bool:
        self.whole = True
        return super().__eq__(other)

    __hash__ = None

    def items(self) -> Any:
        self.whole = True
        return super().items()

    def values(self) -> Any:
        self.whole = True
        return super().values()

    def keys(self) -> Any:
        self.whole = True
        return super().keys()

    def copy(self) -> Any:
        self.whole = True
        return super().copy()


def fixed_reads(environment: Any, condition: Any, tools: Writable) -> list[str]:
    """Return the keys of the state that a condition reads, if no tool's code can change what it comes to."""
    state = getattr(environment, "_state", None)
    code = getattr(condition, "__code__", None)
    if type(state) is not dict or type(code) is not CodeType or tools.anything:
        return []
    contents = [cell_content(cell) for cell in getattr(condition, "__closure__", None) or ()]
    if any(type(c) not in (str, int, float, bool, type(None), tuple) and c is not environment for c in contents):
        return []
    if any(c is environment for c in contents) and not tools.leaves_alone(code.co_names):
        return []
    if any(type(constant) is CodeType for constant in code.co_consts) or _calls_own(environment, condition, contents):
        return []  # an inner function or comprehension may read what the outer one does not name
    seen = _Seen(state)
    environment._state = seen
    try:
        ToolEnv._holds(environment, condition)
    finally:
        environment._state = state
    if seen.whole or not seen.asked or seen.asked & tools.words:
        return []
    owned = {id(value) for key in seen.asked if key in state for value in containers(state[key])}
    shared = [value for name, value in attributes(environment).items() if name != "_state"]
    shared += [value for key, value in state.items() if key not in seen.asked]
    if owned and any(id(inner) in owned for value in shared for inner in containers(value)):
        return []
    return sorted(short_text(key) for key in seen.asked)[:MAX_LISTED]


def _calls_own(environment: Any, condition: Any, contents: list[Any]) -> bool:
    """Whether a condition uses anything of the program's but scalars: a function of it may read whatever it likes."""
    own, plain = attributes(environment), (str, int, float, bool, type(None))
    of_itself = any(content is environment for content in contents)
    for name in condition.__code__.co_names:
        known = getattr(condition, "__globals__", {}).get(name)
        if known is not None and type(known) not in plain and type(known) is not ModuleType:
            return True
        if of_itself and name != "_state" and hasattr(type(environment), name):
            return True
        if of_itself and name != "_state" and name in own and type(own[name]) not in plain:
            return True
    return False


_BOOLS = ("true", "false")
_TEXT_KEY = re.compile(r"\['([^']*)'\]\Z")
_TEXT_KEYS = re.compile(r"\['([^']*)'\]")
_ONE_NUMBER = re.compile(r"\D*[^\d.]?(\d{1,12})(?!\.)\D*")
_MENDS: tuple[tuple[str, Any], ...] = (
    ("a number as text", lambda v: str(v) if type(v) in (int, float) else v),
    ("text as a number", lambda v: int(v) if type(v) is str and v.strip().lstrip("-").isdecimal() else v),
    ("the number in it", lambda v: int(n[1]) if type(v) is str and (n := _ONE_NUMBER.fullmatch(v)) else v),
    ("a whole number", lambda v: int(v) if type(v) is float and v.is_integer() else v),
    ("true or false as text", lambda v: str(v) if type(v) is bool else v),
    ("text as true or false", lambda v: v.lower() == "true" if type(v) is str and v.lower() in _BOOLS else v),
    ("lower case", lambda v: v.lower() if type(v) is str else v),
    ("upper case", lambda v: v.upper() if type(v) is str else v),
    ("a capital first letter", lambda v: v.capitalize() if type(v) is str else v),
    ("no blanks around it", lambda v: v.strip() if type(v) is str else v),
)


def mends(environment: Any, condition: Any, state: Any) -> list[str]:
    """Try the state with values of one place (keys included), or of all places, in another type or spelling."""
    if type(state) is not dict:
        return []
    found: list[str] = []
    places = [path for path, _, scalar in walk(state, "state") if scalar][:40]
    try:
        for words, change in _MENDS:
            for place in [*places, "", "keys"]:
                environment._state = _changed(state, "state", place, change)
                if ToolEnv._holds(environment, condition)[0]:
                    where = place or ("any value of the state" if place == "" else "")
                    found.append(short_text(f"{'the keys of the state' if place == 'keys' else where}: {words}"))
                    break
    finally:
        environment._state = state
    return found[:4]


def unwritten(environment: Any, condition: Any, tools: Writable) -> list[str]:
    """Places whose last key no tool's code names, but with whose value changed the condition would hold."""
    state = getattr(environment, "_state", None)
    if type(state) is not dict or tools.anything:
        return []
    wanted: dict[tuple[str, Any], None] = {("bool", True): None, ("bool", False): None}
    code = getattr(condition, "__code__", None)
    contents = [cell_content(cell) for cell in getattr(condition, "__closure__", None) or ()]
    for value in (*contents, *(code.co_consts if type(code) is CodeType else ())):
        if type(value) in (str, int, float, bool):
            wanted[type(value).__name__, value] = None
    found: list[str] = []
    places = [(path, _last_key(path)) for path, _, scalar in walk(state, "state") if scalar]
    try:
        for path in [path for path, key in places if key and key not in tools.words][:12]:
            for _, value in list(wanted)[:12]:
                environment._state = _changed(state, "state", path, lambda _, value=value: value, free=True)
                if ToolEnv._holds(environment, condition)[0]:
                    stored = tools.keys.intersection(_TEXT_KEYS.findall(path))
                    outright = " outright" if tools.computed or stored else ""
                    found.append(short_text(f"{path}, which no tool's code names{outright}: {value!r:.40}"))
                    break
    finally:
        environment._state = state
    return found[:2]


def _last_key(path: str) -> str:
    match = _TEXT_KEY.search(path)
    return match[1] if match else ""


def _changed(value: Any, path: str, place: str, change: Any, *, free: bool = False) -> Any:
    if type(value) is dict:
        return {
            change(key) if place == "keys" else key: _changed(item, f"{path}[{key!r:.80}]", place, change, free=free)
            for key, item in value.items()
        }
    if type(value) in (list, tuple):
        items = enumerate(value)
        return type(value)(_changed(item, f"{path}[{index}]", place, change, free=free) for index, item in items)
    if value is None or type(value) in (str, int, float, bool):
        new = change(value) if place in ("", path) else value
        return new if free or bool(new) == bool(value) else value  # "False" counts as true: that would mend anything
    return value
