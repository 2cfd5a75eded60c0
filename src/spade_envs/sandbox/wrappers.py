"""Our own versions of library functions that take names as strings, set attributes, or act outside the program."""

from __future__ import annotations

import abc
import collections
import contextlib
import dataclasses
import sys
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, NoReturn

from . import guards
from .guards import Refused, check_attribute_name, own, safe_getattr, writable_type
from .names import GUARDED_ATTRIBUTES, PROGRAM_MODULE, attribute_refusal, is_private

# -- operator, functools ------------------------------------------------------------------------------


def attrgetter(name: str, /, *names: str) -> Callable[[Any], Any]:
    """``operator.attrgetter`` under the policy's rules."""
    paths = [_path(item) for item in (name, *names)]
    if len(paths) == 1:
        return lambda value: _walk(value, paths[0])
    return lambda value: tuple(_walk(value, path) for path in paths)


def _path(name: Any) -> list[str]:
    if type(name) is not str:
        raise Refused("attrgetter takes attribute names as str")
    return name.split(".")


def _walk(value: Any, path: list[str]) -> Any:
    for part in path:
        value = safe_getattr(value, part)
    return value


def methodcaller(name: str, /, *args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """``operator.methodcaller`` under the policy's rules."""
    return lambda value: safe_getattr(value, name)(*args, **kwargs)


def wraps(wrapped: Any, *_ignored: Any, **_named: Any) -> Callable[[Any], Any]:
    """``functools.wraps`` that copies name and docstring only, onto the program's own functions."""

    def decorate(wrapper: Any) -> Any:
        own(wrapper)
        for name in ("__name__", "__qualname__", "__doc__"):
            text = getattr(wrapped, name, None)
            if type(text) is str and (name == "__doc__" or _is_plain(text)):
                setattr(wrapper, name, text)
        return wrapper

    return decorate


def _is_plain(name: str) -> bool:
    return all(attribute_refusal(part, reading=False) is None for part in name.split("."))


def owned_decorator(decorate: Callable[..., Any]) -> Callable[..., Any]:
    """Restrict a class decorator to the program's own classes (``total_ordering``, ``unique``)."""

    def decorator(cls: Any) -> Any:
        return decorate(own(cls))

    return decorator


def abstractmethod(function: Any) -> Any:
    """``abc.abstractmethod``, which marks what the program defined."""
    return abc.abstractmethod(_defined_here(function))


def final(target: Any) -> Any:
    """``typing.final``, which marks what the program defined."""
    return typing.final(_defined_here(target)) if isinstance(target, type | types.FunctionType) else target


def contextmanager(function: Any) -> Any:
    """``contextlib.contextmanager``, which copies all attributes of the function (of a class, its raw descriptors)."""
    if not callable(function):
        raise Refused(f"contextmanager decorates a generator function, not a {type(function).__name__} object")
    return contextlib.contextmanager(_defined_here(function))


def _defined_here(value: Any) -> Any:
    if getattr(value, "__module__", None) != PROGRAM_MODULE:  # decorators of the library hand this on
        own(value)
    return value


# -- dataclasses, collections -------------------------------------------------------------------------

_annotations_of = vars(type)["__annotations__"].__get__
"""What ``dataclasses`` reads of a class itself. From Python 3.14 a function makes it, once, when it is first read."""


def dataclass(cls: Any = None, /, **options: Any) -> Any:
    """``dataclasses.dataclass`` on the program's own classes."""

    def decorate(target: Any) -> Any:
        if not isinstance(target, type):
            raise Refused("dataclass decorates a class")
        # Field names become source text of the methods that dataclasses writes; a functional TypedDict takes any text.
        for name in _annotations_of(target):
            check_attribute_name(name, reading=False)
            if not name.isidentifier():
                raise Refused(f"dataclass field {name!r} must be a plain name")
            if name in GUARDED_ATTRIBUTES and issubclass(target, str | BaseException):  # asdict would read the base's
                raise Refused(f"dataclass field {name!r} hides a method of the base; choose another name")
        written = dict(vars(target))
        made = dataclasses.dataclass(own(target), **options)
        guards.own_classes.add(made)
        _keep_to_own(made, written)
        return made

    return decorate if cls is None else decorate(cls)


def _keep_to_own(made: type, written: Any) -> None:
    """Let generated methods read private and guarded fields of instances only: they can be called on anything."""
    if not any(is_private(item.name) or item.name in GUARDED_ATTRIBUTES for item in dataclasses.fields(made)):
        return
    for name in ("__repr__", "__eq__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__"):
        method = vars(made).get(name)
        if type(method) is types.FunctionType and method is not written.get(name):
            setattr(made, name, _checked_receiver(method, made))


def _checked_receiver(method: Any, made: type) -> Any:
    def checked(self: Any, /, *others: Any) -> Any:
        if not issubclass(type(self), made):
            raise Refused(
                f"{made.__name__}.{method.__name__} needs a {made.__name__}, not a {type(self).__name__} object"
            )
        return method(self, *others)

    checked.__name__, checked.__qualname__, checked.__doc__ = method.__name__, method.__qualname__, method.__doc__
    return checked


def namedtuple(
    typename: str, field_names: str | Iterable[str], *, rename: bool = False, defaults: Any = None, module: Any = None
) -> Any:
    """``collections.namedtuple`` with plain field names."""
    names = field_names.replace(",", " ").split() if isinstance(field_names, str) else list(field_names)
    for name in (typename, *names):
        check_attribute_name(name, reading=False)
    make: Any = collections.namedtuple
    made = make(typename, names, rename=rename, defaults=defaults, module=PROGRAM_MODULE)
    guards.own_classes.add(made)
    return made


class SimpleNamespace(types.SimpleNamespace):
    """``types.SimpleNamespace`` with plain attribute names (``copy`` would call a ``__reduce_ex__`` given to it)."""

    def __init__(self, /, **attributes: Any) -> None:
        for name in attributes:
            check_attribute_name(name, reading=False)
        super().__init__(**attributes)


SimpleNamespace.__name__ = "namespace"  # as repr() shows it
SimpleNamespace.__module__ = "types"
writable_type(SimpleNamespace)


# -- sys, logging, warnings ---------------------------------------------------------------------------


def _exit(status: Any = None) -> NoReturn:
    raise SystemExit(status)


class _Stream:
    """A text stream that says nothing."""

    __slots__ = ()
    write = flush = writelines = staticmethod(lambda *_args: None)

    def isatty(self) -> bool:
        return False


SYS: dict[str, Any] = {
    "argv": ("environment",),
    "platform": "environment",
    "stdout": _Stream(),
    "stderr": _Stream(),
    "version": sys.version.partition(" ")[0],
    "exit": _exit,
    "setrecursionlimit": lambda limit: None,
    "getrecursionlimit": lambda: 1000,
    "getsizeof": lambda value, default=0: sys.getsizeof(value),
    "version_info": tuple(sys.version_info),
    "float_info": sys.float_info,
}
"""Replacements for names of the ``sys`` module."""


def silent(*_args: Any, **_kwargs: Any) -> None:
    """Do nothing: generated code has nobody to print or log to."""


class _Logger:
    """A logger that says nothing."""

    __slots__ = ()
    level: ClassVar[int] = 0

    debug = info = warning = error = critical = exception = log = setLevel = addHandler = staticmethod(silent)  # noqa: N815

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802
        return False


_LOGGER = _Logger()

LOGGING: dict[str, Any] = {
    "getLogger": lambda name=None: _LOGGER,
    "NullHandler": _Logger,
    **dict.fromkeys(("basicConfig", "debug", "info", "warning", "error", "critical", "exception"), silent),
}
"""Replacements for names of the ``logging`` module."""

WARNINGS: dict[str, Any] = dict.fromkeys(("warn", "filterwarnings", "simplefilter"), silent)
"""Replacements for names of the ``warnings`` module."""


# -- gymnasium ----------------------------------------------------------------------------------------
class _OwnMetadata:
    """An empty dictionary for each instance: one for all would be shared by all programs of the process."""

    def __get__(self, instance: Any, owner: Any = None) -> dict[str, Any]:
        found: dict[str, Any] = {} if instance is None else vars(instance).setdefault("metadata", {})
        return found


class Env:
    """Stand-in for ``gymnasium.Env`` as a base class: no spaces, no renderer."""

    metadata: ClassVar[Any] = _OwnMetadata()
    render_mode = None
    spec = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Begin an episode; subclasses call it first."""
        return "", {}

    def close(self) -> None:
        """Release nothing."""

    def render(self) -> None:
        """Draw nothing."""


class Space:
    """Stand-in for every ``gymnasium.spaces`` class: keeps its arguments."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args, self.kwargs = args, kwargs
        self.n = args[0] if args else kwargs.get("n")
        self.shape = kwargs.get("shape")


GYMNASIUM: dict[str, Any] = {"Env": Env}
SPACES: dict[str, Any] = {
    name: type(name, (Space,), {})
    for name in ("Discrete", "Text", "Box", "Dict", "Tuple", "MultiDiscrete", "MultiBinary")
} | {"Space": Space}
