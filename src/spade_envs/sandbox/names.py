"""Which names generated code may speak: attributes, dunders, variables. Data and pure predicates only.

The compile-time policy and the run-time guards share these rules, so a name that is refused in the source is
refused as a string too.
"""

from __future__ import annotations

from RestrictedPython.transformer import INSPECT_ATTRIBUTES


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


RESERVED_PREFIX = "_sbx"
"""Names with this prefix belong to the guards."""

PROGRAM_MODULE = "environment"
"""``__name__`` of a generated program; a class is the program's own when this is its ``__module__``."""

FORBIDDEN_ATTRIBUTES = frozenset(INSPECT_ATTRIBUTES) | _words(
    "mro func_globals func_code func_closure func_defaults gi_running gi_suspended f_lineno f_lasti f_trace_lines "
    "f_trace_opcodes f_generator co_consts co_names co_filename co_varnames tb_lasti tb_lineno cr_running ag_running"
)
"""Frames, code and tracebacks: the ways from an object to the interpreter."""

METACLASS_PRIVATES = _words(
    "_create_ _convert_ _get_mixins_ _find_data_repr_ _find_data_type_ _find_new_ _check_for_existing_members_ "
    "_add_member_ _add_alias_ _proto_member_ _new_member_ _dump_registry _abc_registry_clear "
    "_abc_caches_clear _abc_impl"
)
"""Private methods of library metaclasses, which every class of theirs shows: ``_convert_`` reads any module."""

READABLE_DUNDERS = _words(
    "__init__ __post_init__ __name__ __qualname__ __class__ __doc__ __members__ __len__ __eq__ __ne__ __lt__ __le__ "
    "__gt__ __ge__ __hash__ __repr__ __str__ __contains__ __iter__ __next__ __getitem__ __setitem__ __delitem__ "
    "__enter__ __exit__ __add__ __sub__ __mul__ __bool__ __copy__ __deepcopy__ __missing__ __format__"
)
"""Dunder attributes that may be read."""

DEFINABLE_DUNDERS = _words(
    "__init__ __post_init__ __repr__ __str__ __len__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __hash__ __bool__ "
    "__contains__ __iter__ __next__ __reversed__ __getitem__ __setitem__ __delitem__ __missing__ __call__ __enter__ "
    "__exit__ __add__ __radd__ __iadd__ __sub__ __rsub__ __isub__ __mul__ __rmul__ __imul__ __truediv__ __rtruediv__ "
    "__itruediv__ __floordiv__ __rfloordiv__ __ifloordiv__ __mod__ __rmod__ __imod__ __divmod__ __rdivmod__ __pow__ "
    "__rpow__ __ipow__ __neg__ __pos__ __abs__ __invert__ __and__ __rand__ __iand__ __or__ __ror__ __ior__ __xor__ "
    "__rxor__ __ixor__ __lshift__ __rlshift__ __rshift__ __rrshift__ __matmul__ __rmatmul__ __int__ __float__ "
    "__complex__ __index__ __round__ __trunc__ __floor__ __ceil__ __bytes__ __format__ __copy__ __deepcopy__ "
    "__length_hint__"
)
"""Methods that a class may define."""

CLASS_DUNDERS = DEFINABLE_DUNDERS | {"__slots__", "__doc__"}
"""Dunder names that a class body may bind."""

MODULE_DUNDERS = frozenset({"__all__", "__version__", "__author__", "__license__", "__doc__"})
"""Dunder names that a module body may bind."""

READABLE_DUNDER_NAMES = frozenset({"__name__", "__doc__"}) | CLASS_DUNDERS | MODULE_DUNDERS

PUBLIC_PRIVATES = frozenset({"_replace", "_asdict", "_fields", "_make", "_field_defaults", "_value_", "_name_"})
"""Attributes with a leading underscore that are public by documentation (named tuples, enumerations)."""

ENUM_MEMBER_NAMES = frozenset({"_name_", "_value_"})
"""Names that library code trusts when it copies an enumeration's member."""

GUARDED_ATTRIBUTES = frozenset({"format", "format_map", "obj", "groupindex", "register", "__class__", "__init__"})
"""Attributes whose meaning depends on the object, so they are resolved at run time."""

NUMPY_GUARDED = _words(
    "tofile dump dumps ctypes data base view resize setflags setfield getfield newbyteorder bit_generator "
    "byteswap fromfile memmap set_state"
)
"""Attributes resolved at run time as well when a program may use numpy: some reach memory or files."""

UNAVAILABLE_NAMES = {
    "eval": "parse the text yourself, or use ast.literal_eval for literals",
    "exec": "write the code out; call functions from a dict of name -> function",
    "compile": "write the code out; for patterns use re.compile",
    "open": "put the data into the source as a string, list or dict",
    "input": "the player's text arrives as the argument of step(action)",
    "globals": "keep the values in a dict of your own",
    "locals": "keep the values in a dict of your own",
    "vars": "name the attributes, or keep the values in a dict",
    "dir": "keep a list of the names that you need",
    "breakpoint": "remove it",
    "help": "remove it",
    "exit": "return terminated=True from step instead",
    "quit": "return terminated=True from step instead",
    "memoryview": "slice bytes or bytearray instead",
    "__import__": "write an import statement at the top",
    "__builtins__": "call the built-in by its name",
    "__file__": "remove it; there are no files",
    "__loader__": "remove it",
    "__spec__": "remove it",
}
"""Built-in names that do not exist for generated code, with what to write instead."""


def is_dunder(name: str) -> bool:
    """Whether ``name`` has the form ``__x__``."""
    return len(name) > 4 and name.startswith("__") and name.endswith("__")


def is_private(name: str) -> bool:
    """Whether ``name`` is private to its class: a leading underscore, not a dunder, not public by documentation."""
    return name.startswith("_") and not is_dunder(name) and name not in PUBLIC_PRIVATES


def attribute_refusal(name: str, *, reading: bool) -> str | None:
    """Return why attribute ``name`` is refused whatever the object, or None."""
    if name in FORBIDDEN_ATTRIBUTES or name in METACLASS_PRIVATES:
        return f'attribute "{name}" is not available; keep what you need in attributes of your own'
    if name.startswith(RESERVED_PREFIX):
        return f'names that start with "{RESERVED_PREFIX}" are reserved; choose another name'
    if name in ENUM_MEMBER_NAMES and not reading:
        return f'attribute "{name}" cannot be set; use an attribute of your own'
    if is_dunder(name) and not (reading and name in READABLE_DUNDERS):
        return _DUNDER_ADVICE.get(name, f'attribute "{name}" is not available; use a plain method or attribute instead')
    return None


_DUNDER_ADVICE = {
    "__dict__": 'attribute "__dict__" is not available; name the attributes, or keep the values in a dict',
    "__new__": 'attribute "__new__" is not available; set up the object in __init__',
    "__setattr__": 'attribute "__setattr__" is only available as object.__setattr__(self, name, value)',
    "__getattribute__": 'attribute "__getattribute__" is not available; use getattr(self, name)',
    "__dataclass_fields__": 'attribute "__dataclass_fields__" is not available; use dataclasses.fields(x)',
    "__annotations__": 'attribute "__annotations__" is not available; use dataclasses.fields(x)',
    "__subclasses__": 'attribute "__subclasses__" is not available; keep a list of your classes',
    "__traceback__": 'attribute "__traceback__" is not available; use str(error)',
    "__doc__": 'attribute "__doc__" can be read, not written; use a docstring',
    "__call__": 'attribute "__call__" is not available; call the object: f(...)',
}
