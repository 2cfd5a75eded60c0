"""What stands between generated code and objects when the name alone does not decide.

Generated code owns the classes it defines, their instances and its functions; it may write to these and read their
private attributes. Everything else is read-only to it. Guards test by exact type and identity, never by anything that
a program can define (``__eq__``, ``__instancecheck__``, virtual subclasses).
"""

from __future__ import annotations

import builtins
import collections
import decimal
import functools
import string
import types
from _string import formatter_field_name_split, formatter_parser  # type: ignore[import-not-found]
from abc import ABCMeta
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .names import (
    FORBIDDEN_ATTRIBUTES,
    GUARDED_ATTRIBUTES,
    NUMPY_GUARDED,
    PROGRAM_MODULE,
    attribute_refusal,
    is_private,
)


class Refused(TypeError):
    """Generated code reached for something that is not its own."""


own_classes: set[type] = set()
"""Classes of the running instance's module, as far as seen; :func:`own` adds those that library code made for it.
The worker puts another set here before it runs another instance: classes go when their module goes."""

_WRITABLE_TYPES = {collections.defaultdict, decimal.Context}
_BUILTIN_METHOD, _METHOD_DESCRIPTOR = types.BuiltinMethodType, types.MethodDescriptorType
_CHECKED = FORBIDDEN_ATTRIBUTES | GUARDED_ATTRIBUTES | NUMPY_GUARDED


def own(value: Any) -> Any:
    """Return ``value`` if it belongs to the program.

    Raises:
        Refused: if it does not.
    """
    kind = type(value)
    if kind in own_classes or kind in _WRITABLE_TYPES:
        return value
    if kind.__module__ == PROGRAM_MODULE:
        own_classes.add(kind)
        return value
    if issubclass(kind, type) and value.__module__ == PROGRAM_MODULE:
        return value
    if kind is types.FunctionType and value.__globals__.get("__name__") == PROGRAM_MODULE:
        return value
    if issubclass(kind, BaseException):
        return value
    what = f"the class {value.__name__}" if issubclass(kind, type) else f"a {kind.__name__} object"
    raise Refused(
        f"{what} is not defined in this program: its attributes cannot be set, its private ones not read. "
        "Define a class of your own (a subclass, if need be)."
    )


def check_attribute_name(name: Any, *, reading: bool) -> None:
    """Refuse attribute names (given as strings) that the policy would refuse in the source."""
    if type(name) is not str:
        raise Refused(f"attribute name must be a str, not {type(name).__name__}")
    refusal = attribute_refusal(name, reading=reading)
    if refusal or not name.isascii():
        raise Refused(refusal or f"attribute name {name!r} must be ASCII")


def safe_getattr(value: Any, name: str, /, *default: Any) -> Any:
    """``getattr`` under the policy's rules."""
    if type(name) is str and name[:1] != "_" and name not in _CHECKED and name.isascii():
        return getattr(value, name, *default)
    check_attribute_name(name, reading=True)
    if is_private(name):
        own(value)
    if name == "__class__":
        return type_of(value)
    if name == "obj" and isinstance(value, BaseException):
        raise Refused('attribute "obj" of an exception is not available; use str(error)')
    if name in NUMPY_GUARDED:
        _check_numpy(value, name)
    found = getattr(value, name, *default)
    if name == "__init__":
        return _own_constructor(value, found)
    if name == "register":
        return _own_registration(found)
    if name == "groupindex" and type(found) is types.MappingProxyType:
        return types.MappingProxyType(dict(found))  # patterns are cached, and a comparison gets what a proxy hides
    return _safe_formatting(found, name) if name in ("format", "format_map") else found


def _own_registration(found: Any) -> Any:
    """``ABCMeta.register`` for the program's own classes: others are the same for the whole process."""
    if type(found) is not types.MethodType or found.__func__ is not ABCMeta.register:
        return found
    return lambda subclass: found(own(subclass))


def safe_hasattr(value: Any, name: str, /) -> bool:
    """``hasattr`` under the policy's rules: what may not be read is not there."""
    try:
        safe_getattr(value, name)
    except (AttributeError, Refused):
        return False
    return True


def safe_setattr(value: Any, name: str, content: Any, /) -> None:
    """``setattr`` on the program's own objects."""
    check_attribute_name(name, reading=False)
    setattr(own(value), name, content)


def safe_delattr(value: Any, name: str, /) -> None:
    """``delattr`` on the program's own objects."""
    check_attribute_name(name, reading=False)
    delattr(own(value), name)


def object_setattr(value: Any, name: str, content: Any, /) -> None:
    """``object.__setattr__`` on the program's own objects (frozen dataclasses use it in ``__post_init__``)."""
    check_attribute_name(name, reading=False)
    object.__setattr__(own(value), name, content)


# -- formatting -----------------------------------------------------------------------------------
class _Formatter(string.Formatter):
    """``str.format`` whose field paths go through :func:`safe_getattr`."""

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        first, rest = formatter_field_name_split(field_name)
        value = self.get_value(first, args, kwargs)
        for is_attribute, key in rest:
            value = safe_getattr(value, key) if is_attribute else value[key]
        return value, first


_FORMATTER = _Formatter()


@functools.lru_cache(4096)
def _has_no_path(template: str) -> bool:
    """Whether no replacement field of ``template`` walks attributes or items."""
    for _, field, spec, _ in formatter_parser(template):
        if field and ("." in field or "[" in field):
            return False
        if spec and "{" in spec and not _has_no_path(spec):
            return False
    return True


def safe_format(template: str, /, *args: Any, **kwargs: Any) -> str:
    """``str.format`` without attribute paths that the policy refuses."""
    text = str.__str__(template)
    if _has_no_path(text):
        return str.format(text, *args, **kwargs)
    return _FORMATTER.vformat(text, args, kwargs)


def safe_format_map(template: str, mapping: Mapping[str, Any], /) -> str:
    """``str.format_map`` without attribute paths that the policy refuses."""
    return _FORMATTER.vformat(str.__str__(template), (), mapping)


def _safe_formatting(found: Any, name: str) -> Any:
    safe = safe_format if name == "format" else safe_format_map
    if type(found) is _BUILTIN_METHOD and isinstance(found.__self__, str):
        return functools.partial(safe, found.__self__)
    if type(found) is _METHOD_DESCRIPTOR and found.__objclass__ is str:
        return safe
    return found


def _own_constructor(value: Any, found: Any) -> Any:
    """``Class.__init__`` for the program's own objects only: a dataclass's would set any attribute on anything."""
    if type(value) is super:
        value = _receiver_of(value)
        if type(value) in _WRITABLE_TYPES:  # it is the library's: its own constructor takes any name
            raise Refused(f"super(...).__init__ needs an object of your own class, not a {type(value).__name__}")
    if not issubclass(type(value), type):
        own(value)
        return found

    def construct(target: Any, /, *args: Any, **kwargs: Any) -> None:
        found(own(target), *args, **kwargs)

    return construct


_receiver_of = vars(super)["__self__"].__get__
"""The object behind ``super(...)``, whatever its class defines."""


# -- classes --------------------------------------------------------------------------------------
def stand_in(
    name: str, test: Callable[[Any], bool], subtest: Callable[[type], bool], call: Callable[..., Any] | None = None
) -> Any:
    """Return a class that answers ``isinstance`` like another one, but cannot be subclassed.

    Calling it runs ``call``, or is refused.
    """

    def meta_call(cls: type, *args: Any, **kwargs: Any) -> Any:
        if call is None:
            raise Refused(f"{name}(...) cannot be called here; define a class of your own")
        return call(*args, **kwargs)

    methods = {
        "__instancecheck__": lambda cls, value: test(value),
        "__subclasscheck__": lambda cls, other: subtest(other),
        "__call__": meta_call,
    }
    meta = type(f"{name}Meta", (_StandInMeta,), methods)
    return type.__call__(meta, name, (), {"__slots__": (), "__class_getitem__": classmethod(types.GenericAlias)})


class _StandInMeta(type):
    """Marks stand-ins, which :func:`build_class` refuses as bases."""


def _type_call(*args: Any) -> Any:
    if len(args) != 1:
        raise Refused("type() takes one argument here; write a class statement")
    return type_of(args[0])


safe_type = stand_in("type", lambda value: isinstance(value, type), lambda other: issubclass(other, type), _type_call)
"""``type`` of generated code: one argument only, and no metaclass is handed out."""

abc_meta = stand_in("ABCMeta", lambda value: isinstance(value, ABCMeta), lambda other: issubclass(other, ABCMeta))
"""``abc.ABCMeta`` of generated code; the policy turns ``metaclass=ABCMeta`` into the real one."""


def writable_type(kind: type) -> None:
    """Let the program set attributes of instances of ``kind`` (which must have no private ones)."""
    _WRITABLE_TYPES.add(kind)


_replaced_types: dict[type, Any] = {}
"""Types whose stand-in is handed out by ``type(x)``."""


def replace_type(real: type, substitute: Any) -> None:
    """Make ``type(x)`` and ``x.__class__`` give ``substitute`` for instances of ``real``."""
    _replaced_types[real] = substitute


def keep_type(kind: Any) -> None:
    """Let ``type(x)`` give the class ``kind`` itself, which may not be derived from."""
    if isinstance(kind, type) and not issubclass(type(kind), _StandInMeta):
        _replaced_types[kind] = kind


def type_of(value: Any) -> Any:
    """``type(value)``, or a stand-in of the same name for classes that are not handed out.

    Library code trusts the constructors of its own helpers: a ``typing`` alias, copied, looks a name up in its module.
    """
    kind = type(value)
    if kind in own_classes or kind in _BASES:
        return kind
    if issubclass(kind, type):
        return safe_type
    if kind.__module__ == PROGRAM_MODULE:
        return kind
    if kind not in _replaced_types:
        _replaced_types[kind] = stand_in(
            kind.__name__, lambda other: issubclass(type(other), kind), lambda other: issubclass(other, kind)
        )
    return _replaced_types[kind]


def build_class(function: Any, name: str, *bases: Any, **keywords: Any) -> Any:
    """``__build_class__`` with checked bases; the new class is the program's own."""
    for base in bases:
        if not issubclass(type(base), type) and type(base).__module__ != "typing" and not _is_alias(base):
            raise Refused(f"class {name}: a base must be a class, not a {type(base).__name__} object")
    for base in types.resolve_bases(bases):  # typing.Type stands for type itself
        if not issubclass(type(base), type) or (base not in _BASES and base.__module__ != PROGRAM_MODULE):
            raise Refused(f"class {name} cannot derive from {getattr(base, '__name__', base)!s}")
    made = builtins.__build_class__(function, name, *bases, **keywords)
    if isinstance(made, type):
        own_classes.add(made)
    return made


_BASES: set[type] = set()
_ALIASES: list[Any] = []


def allow_base(base: Any) -> None:
    """Allow a class that is handed out (or what ``typing.NamedTuple`` and the like stand for) as a base class.

    Classes that a program only reaches through ``type(x)`` are not allowed: library code trusts the attributes of its
    own helpers (the name in a dataclass field, say), which a subclass could set.
    """
    if isinstance(base, type):
        # a stand-in cannot be derived from, a metaclass must not be
        if not issubclass(base, type) and not issubclass(type(base), _StandInMeta) and base is not super:
            _BASES.add(base)
    elif type(base) is types.FunctionType and hasattr(base, "__mro_entries__"):
        _ALIASES.append(base)
        _BASES.update(kind for kind in types.resolve_bases((base,)) if not issubclass(kind, type))


def _is_alias(value: Any) -> bool:
    return type(value) is types.GenericAlias or any(value is alias for alias in _ALIASES)


def _check_numpy(value: Any, name: str) -> None:
    if type(value) is super:
        value = _receiver_of(value)
    kind = value if isinstance(value, type) else type(value)
    if not any(base.__module__.partition(".")[0] == "numpy" for base in type.mro(kind)):
        return
    raise Refused(f'numpy attribute "{name}" is not available; use indexing, reshape or copy')
