"""Changes to the worker's own interpreter, for ways that no proxy can close.

Made once, in a process that runs nothing but generated code.
"""

from __future__ import annotations

import builtins
import copy
import dataclasses
import enum
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from . import guards
from .names import PROGRAM_MODULE, is_private


def harden() -> None:
    """Refuse functional enumerations and guard what ``copy`` and enumerations read and set by name."""
    _refuse_functional_enums()
    _guard_enum_redirects()
    _guard_copying()
    _evaluate_plainly()
    # A comparison gets what a proxy hides, and this one is in every field.
    dataclasses._EMPTY_METADATA = types.MappingProxyType(_Nothing())  # type: ignore[attr-defined]


class _Nothing(Mapping[Any, Any]):
    """An empty mapping that cannot be changed."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        raise KeyError(key)

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "{}"


def _refuse_functional_enums() -> None:
    """``Enum("X", {"__reduce_ex__": ...})`` would make a class with any dunder."""
    original = enum.EnumMeta.__call__
    if getattr(original, "__name__", "") == "call_without_names":
        return

    def call_without_names(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if len(args) != 1 or kwargs:
            raise guards.Refused("Enum(name, members) is not available; write a class statement")
        return original(cls, args[0])

    enum.EnumMeta.__call__ = call_without_names  # type: ignore[method-assign]


def _guard_enum_redirects() -> None:
    """From Python 3.12 a member that hides a base's method reads the attribute of that name from its own value."""
    redirect: Any = enum.property
    original = redirect.__get__
    if original.__name__ == "guarded_get":
        return

    def guarded_get(self: Any, instance: Any, ownerclass: Any = None) -> Any:
        if instance is not None and self.fget is None and getattr(self, "_attr_type", None) == "desc":
            return guards.safe_getattr(instance._value_, self.name)
        return original(self, instance, ownerclass)

    guarded_get.__name__ = "guarded_get"
    redirect.__get__ = guarded_get


def _evaluate_plainly() -> None:
    """From Python 3.14 a missing name in an annotation becomes a ``ForwardRef``: it evaluates text with all built-ins.

    The text of ``TypeVar("T", bound="open")`` is one too. In a worker a missing name raises ``NameError``, as in older
    versions, and nothing is evaluated. Attributes of constants in syntax trees, gone since then, come back.
    """
    if sys.version_info >= (3, 14):
        import ast

        import annotationlib

        def call(annotate: Any, format: Any, *, owner: Any = None, _is_evaluate: bool = False) -> Any:
            return annotate(annotationlib.Format.VALUE)

        def refuse(self: Any, **_options: Any) -> Any:
            raise guards.Refused("a forward reference cannot be evaluated here; define the class first")

        annotationlib.call_annotate_function = call
        annotationlib.ForwardRef.evaluate = refuse
        ast.Constant.n = ast.Constant.s = property(lambda node: node.value)


def _guard_copying() -> None:
    """Copying follows ``__reduce_ex__``: methods reduce to ``getattr(receiver, name)``, state is set by name."""
    copy._reconstruct = _reconstruct  # type: ignore[attr-defined]


def _reconstruct(
    x: Any,
    memo: Any,
    function: Any,
    args: Any,
    state: Any = None,
    items: Iterable[Any] | None = None,
    pairs: Iterable[tuple[Any, Any]] | None = None,
    *,
    deepcopy: Any = copy.deepcopy,
) -> Any:
    """``copy._reconstruct`` that makes objects of the same class only and sets plain names only.

    Everything is checked after it was deep-copied: a program may pass a ``memo`` that puts anything in its place.
    What numpy's objects are made of cannot be checked (a data type's state says where pointers are): it is copied with
    a memo of its own. So are private attributes of what is not the program's: a memo keeps what went through it.
    """
    if memo is not None and type(memo) is not dict:
        raise guards.Refused(f"the memo of a copy must be a dict, not a {type(memo).__name__} object")
    inner = {} if type(x).__module__.partition(".")[0] == "numpy" and memo is not None else memo

    def copied(value: Any) -> Any:
        return value if inner is None else deepcopy(value, inner)

    by_name = function is builtins.getattr
    made = (guards.safe_getattr if by_name else function)(*[copied(value) for value in args])
    if not by_name and function is not builtins.iter and type(made) is not type(x):
        raise guards.Refused(f"a {type(x).__name__} object cannot be copied as a {type(made).__name__} object")
    if memo is not None:
        memo[id(x)] = made
    if state is not None:
        own = type(x).__module__ == PROGRAM_MODULE

        def part(names: Any) -> Any:
            """The attributes, copied without showing the dict itself (the object's own one) to the memo."""
            if memo is None or type(names) is not dict:
                return copied(names)
            return {
                copied(name): copied(value) if own or not _is_private(name) else deepcopy(value, {})
                for name, value in names.items()
            }

        paired = type(state) is tuple and len(state) == 2
        _set_state(made, (part(state[0]), part(state[1])) if paired else part(state))
    for item in items or ():
        made.append(copied(item))
    for key, value in pairs or ():
        made[copied(key)] = copied(value)
    return made


def _set_state(made: Any, state: Any) -> None:
    parts = state if type(state) is tuple and len(state) == 2 else (state,)
    for part in parts:
        if isinstance(part, dict):
            for name in dict.keys(part):
                _check_state_name(name)
    if hasattr(made, "__setstate__"):
        made.__setstate__(state)
        return
    for part in parts:
        if part is not None and type(part) is not dict:
            raise guards.Refused(f"the state of a copy must be a dict, not a {type(part).__name__}")
    if parts[0] is not None:
        made.__dict__.update(parts[0])
    for name, value in (parts[1] or {}).items() if len(parts) == 2 else ():
        setattr(made, name, value)


def _is_private(name: Any) -> bool:
    return isinstance(name, str) and is_private(name)


def _check_state_name(name: Any) -> None:
    if isinstance(name, str) and not (type(name) is str and name in _LIBRARY_STATE):
        guards.check_attribute_name(name, reading=False)


_LIBRARY_STATE = frozenset({"__orig_class__", "__notes__", "__objclass__"})
"""Dunder attributes that library code itself sets on instances."""
