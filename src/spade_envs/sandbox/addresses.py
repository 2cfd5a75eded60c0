"""Whether a program can see where in memory its objects lie, told from its code.

Where it cannot, it does the same in every process: hashes of text are fixed there, clocks and random numbers are the
sandbox's own. What shows addresses is ``id()``, ``hash()``, the order of sets, and what is printed of an object without
a text of its own (:func:`shows_address`). The answer errs on the side of "can".
"""

from __future__ import annotations

from opcode import opmap
from types import CodeType

_NAMES = frozenset(
    ("id", "hash", "__hash__", "set", "frozenset", "Set", "FrozenSet", "AbstractSet", "MutableSet", "pformat")
) | {"KeysView", "ItemsView", "numpy", "np"}
_SETS = frozenset((opmap["BUILD_SET"], opmap["SET_ADD"], opmap["SET_UPDATE"]))
_BINARY = opmap["BINARY_OP"]
_VIEWS = frozenset(("keys", "items"))
_SET_OPERATORS = frozenset((1, 7, 12, 14, 20, 25))  # & | ^, and in place
_DIFFERENCE = frozenset((10, 23))  # -, and in place
_PLAIN = (str, int, float, bytes)


def sees_addresses(code: CodeType) -> bool:
    """Return whether the program of this code may depend on addresses."""
    waiting = [code]
    for part in waiting:  # grows while it is read
        names = part.co_names
        if not _NAMES.isdisjoint(names) or not _NAMES.isdisjoint(part.co_varnames):
            return True
        operations = part.co_code[::2]
        if not _SETS.isdisjoint(operations):
            return True
        if not _VIEWS.isdisjoint(names) and _joins_views(part.co_code, "keys" in names):
            return True
        for constant in part.co_consts:
            if type(constant) is CodeType:
                waiting.append(constant)
            elif type(constant) is frozenset and not all(type(item) in _PLAIN for item in constant):
                return True
    return False


def _joins_views(code: bytes, keys: bool) -> bool:
    """Whether two views may be joined to a set: ``a.keys() & b.keys()``. Differences of numbers are too common."""
    wanted = _SET_OPERATORS | _DIFFERENCE if keys else _SET_OPERATORS
    return any(code[i] == _BINARY and code[i + 1] in wanted for i in range(0, len(code), 2))


def shows_address(text: str) -> bool:
    """Return whether ``text`` may hold an address, as in ``<function f at 0x7f3a>``."""
    return " at 0x" in text
