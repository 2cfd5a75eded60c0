"""Walking through a program's objects by exact type, without running its code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from spade_envs.sandbox.inspection import MAX_VALUE

MAX_WALK, _MAX_DEPTH = 4_000, 8


def short_text(text: str, limit: int = MAX_VALUE) -> str:
    # of a subclass of str: what its own methods say is no text
    return str.__getitem__(text, slice(limit)).encode("utf-8", "replace").decode("utf-8")


def attributes(value: Any) -> dict[str, Any]:
    try:
        found = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return found if type(found) is dict else {}


def _leaves(value: Any, path: str, depth: int, seen: set[int]) -> Iterator[tuple[str, Any, bool]]:
    """Yield ``(path, value, is scalar)`` for what is inside; containers that are empty or too deep by type."""
    kind = type(value)
    if value is None or kind in (str, int, float, bool):
        yield path, value, True
        return
    inner: list[tuple[str, Any]] = []
    if depth < _MAX_DEPTH and id(value) not in seen:
        if issubclass(kind, dict):
            inner = [(f"{path}[{key!r:.80}]", item) for key, item in list(dict.items(value))[:MAX_WALK]]
        elif issubclass(kind, list | tuple):
            inner = [(f"{path}[{index}]", item) for index, item in enumerate(list(value)[:MAX_WALK])]
        elif issubclass(kind, set | frozenset):
            scalars = [item for item in set(value) if type(item) in (str, int, float, bool)]
            inner = [(f"{path}{{}}", item) for item in sorted(scalars, key=repr)]
        elif kind.__module__ not in ("random", "builtins"):
            inner = [(f"{path}.{name}", item) for name, item in list(attributes(value).items())]
    if not inner:
        yield path, kind.__name__, False
        return
    seen = seen | {id(value)}
    for name, item in inner:
        yield from _leaves(item, name, depth + 1, seen)


def walk(value: Any, path: str) -> Iterator[tuple[str, Any, bool]]:
    for count, leaf in enumerate(_leaves(value, path, 0, set())):
        if count >= MAX_WALK:
            return
        yield leaf


def containers(value: Any) -> list[Any]:
    """Lists, dictionaries, sets and objects in ``value``, itself included."""
    found, todo = [], [value]
    seen: set[int] = set()
    while todo and len(seen) < MAX_WALK:
        value = todo.pop()
        if value is None or type(value) in (str, int, float, bool) or id(value) in seen:
            continue
        seen.add(id(value))
        found.append(value)
        if isinstance(value, dict):
            todo += list(dict.values(value))
        elif isinstance(value, list | tuple | set | frozenset):
            todo += list(value)
        else:
            todo += list(attributes(value).values())
    return found


def cell_content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None
