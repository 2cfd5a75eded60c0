"""Changes to the worker's own interpreter, for ways that no proxy can close.

Made once, in a process that runs nothing but generated code.
"""

from __future__ import annotations

import builtins
import copy
import enum
from typing import Any

from . import guards


def harden() -> None:
    """Refuse functional enumerations and guard what ``copy`` reads and sets by name."""
    _refuse_functional_enums()
    _guard_copying()


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


def _guard_copying() -> None:
    """Copying follows ``__reduce_ex__``: methods reduce to ``getattr(receiver, name)``, state is set by name."""
    module: Any = copy
    original = module._reconstruct
    if original.__name__ == "guarded_reconstruct":
        return

    def guarded_reconstruct(
        x: Any, memo: Any, function: Any, args: Any, state: Any = None, *rest: Any, **named: Any
    ) -> Any:
        if function is builtins.getattr:
            function = guards.safe_getattr
        parts = state if type(state) is tuple and len(state) == 2 else (state,)
        for part in parts:
            if type(part) is dict:
                for name in part:
                    _check_state_name(name)
        return original(x, memo, function, args, state, *rest, **named)

    guarded_reconstruct.__name__ = "guarded_reconstruct"
    module._reconstruct = guarded_reconstruct


def _check_state_name(name: Any) -> None:
    if type(name) is str and name not in _LIBRARY_STATE:
        guards.check_attribute_name(name, reading=False)


_LIBRARY_STATE = frozenset({"__orig_class__", "__notes__", "__objclass__"})
"""Dunder attributes that library code itself sets on instances."""
