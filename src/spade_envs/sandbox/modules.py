"""Frozen proxies of the allow-listed modules.

A proxy holds allow-listed functions, classes and constants, never a real module: submodules that library modules
import (``random._os``, ``json.codecs``) are how sandboxes leak.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from importlib import import_module
from typing import Any

from . import generator, syntax, wrappers
from .allowlist import MODULES, OPTIONAL, import_refusal, public_names
from .guards import abc_meta, allow_base, keep_type


class Proxy:
    """A read-only namespace; each module gets a subclass with its names as slots."""

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> None:
        raise TypeError("modules are read-only here; keep the value in a variable of your own")

    def __delattr__(self, name: str) -> None:
        raise TypeError("modules are read-only here")

    def __reduce__(self) -> Any:
        raise TypeError("modules cannot be pickled")

    def __copy__(self) -> Proxy:
        return self

    def __deepcopy__(self, memo: Any) -> Proxy:
        return self


def freeze(module: str, names: dict[str, Any]) -> Proxy:
    """Return a proxy called ``module`` that offers ``names``.

    Raises:
        RuntimeError: if one of them is a real module.
    """
    for name, value in names.items():
        if isinstance(value, types.ModuleType):
            raise RuntimeError(f"allow-listed {module}.{name} is a module; list its names instead")
    members = {"__slots__": tuple(name for name in names if name != "__name__"), "__module__": "spade_envs.modules"}
    kind = type(f"module {module}", (Proxy,), {**members, "__name__": module, "__doc__": None})
    proxy: Proxy = kind()
    for name, value in names.items():
        object.__setattr__(proxy, name, value)
        if module.partition(".")[0] == "numpy":
            keep_type(value)  # numpy's own code trusts instances of its classes: they are no bases
        elif (module, name) not in _FINAL:
            allow_base(value)
    return proxy


_REPLACEMENTS: dict[str, dict[str, Any]] = {
    "abc": {"ABCMeta": abc_meta, "abstractmethod": wrappers.abstractmethod},
    "ast": syntax.AST,
    "collections": {"namedtuple": wrappers.namedtuple},
    "contextlib": {"contextmanager": wrappers.contextmanager},
    "dataclasses": {"dataclass": wrappers.dataclass},
    "datetime": generator.DATETIME,
    "functools": {"wraps": wrappers.wraps},
    "gymnasium": wrappers.GYMNASIUM,
    "gymnasium.spaces": wrappers.SPACES,
    "logging": wrappers.LOGGING,
    "operator": {"attrgetter": wrappers.attrgetter, "methodcaller": wrappers.methodcaller},
    "random": generator.RANDOM,
    "sys": wrappers.SYS,
    "time": generator.TIME,
    "typing": {"final": wrappers.final},
    "types": {"SimpleNamespace": wrappers.SimpleNamespace},
    "uuid": {"uuid4": generator.uuid4},
    "warnings": wrappers.WARNINGS,
}
_FINAL = {("functools", "cached_property"), ("types", "SimpleNamespace"), ("types", "MappingProxyType")}
"""Classes that may not be derived from: they set attributes under names that a subclass could choose."""
_SUBMODULES = {"collections": ("abc",), "gymnasium": ("spaces",), "numpy": ("random", "linalg")}
_REAL_NAME = {"math_verify": "spade_envs.verify", "spade_envs": "spade_envs.contract"}
_cache: dict[str, Proxy] = {}


def load_module(module: str, allow: frozenset[str] = frozenset()) -> Proxy:
    """Return the proxy of ``module``.

    Raises:
        ImportError: if ``module`` is not on the list.
    """
    if public_names(module, allow) is None:
        raise ImportError(import_refusal(module, allow))
    if module not in _cache:
        _cache[module] = freeze(module, _contents(module, allow))
    return _cache[module]


def _contents(module: str, allow: frozenset[str]) -> dict[str, Any]:
    listed = public_names(module, allow) or frozenset()
    submodules = _SUBMODULES.get(module, ())
    if module.partition(".")[0] == "numpy":
        from .numpy_names import contents

        found = contents(module, listed - set(submodules))
    else:
        replaced = _REPLACEMENTS.get(module, {})
        wanted = listed - set(submodules) - set(replaced)
        # gymnasium is all our own; the real one is never imported in a worker
        real = import_module(_REAL_NAME.get(module, module)) if wanted else None
        found = {name: _value(module, real, name) for name in sorted(wanted) if hasattr(real, name)}
        found |= {name: value for name, value in replaced.items() if name in listed}
    for name in submodules:
        found[name] = load_module(f"{module}.{name}", allow)
    return found


def _value(module: str, real: Any, name: str) -> Any:
    value = getattr(real, name)
    if module == "random":
        return generator.dispatch(name)
    if module == "calendar" and not callable(value):
        return tuple(value)
    if (module, name) in (("functools", "total_ordering"), ("enum", "unique")):
        return wrappers.owned_decorator(value)
    return value


def load_all(optional: frozenset[str] = frozenset()) -> None:
    """Build every proxy (the worker's zygote does so before it is jailed)."""
    for module in MODULES:
        load_module(module, optional)
    for name in optional:
        for module in OPTIONAL.get(name, {}):
            load_module(module, optional)


def importer(allow: frozenset[str]) -> Callable[..., Any]:
    """Return the ``__import__`` of a program that opted in to ``allow``."""
    import sys

    def import_hook(name: str, globals_: Any = None, locals_: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        # C code (strptime, re templates, ndarray.sum) imports through this hook too: it passes a list as fromlist,
        # ignores what comes back and takes the module from sys.modules. Import statements pass a tuple or None.
        if type(fromlist) is list and name in sys.modules:
            return None
        if type(name) is not str or level:
            raise ImportError("relative imports are not available")
        if fromlist:
            return load_module(name, allow)
        load_module(name, allow)
        return load_module(name.partition(".")[0], allow)

    return import_hook
