"""Loading a generated program inside its worker: compile, run in a guarded namespace, find its class.

Nothing here isolates anything by itself: call it in a jailed worker process only.
"""

from __future__ import annotations

import builtins
import decimal
import gc
import sys
import types
import typing
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from . import guards
from .allowlist import PREBOUND, PREBOUND_MODULES
from .generator import begin_episode, copy_generator, use_generator
from .hardening import harden
from .modules import importer, load_all, load_module
from .names import PROGRAM_MODULE
from .policy import compile_shareable
from .types import ProtocolViolation
from .wrappers import silent

__all__ = [
    "Compiled",
    "Module",
    "begin_episode",
    "compile_source",
    "copy_generator",
    "harden",
    "load_program",
    "make_namespace",
    "prepare",
    "use_generator",
    "warm",
]

_BUILTINS = (
    "abs all any ascii bin bool bytearray bytes callable chr classmethod complex dict divmod enumerate filter float "
    "format frozenset hash hex id int isinstance issubclass iter len list map max min next object oct ord pow property "
    "range repr reversed round set slice sorted staticmethod str sum super tuple zip True False None NotImplemented "
    "Ellipsis __debug__ ArithmeticError AssertionError AttributeError BaseException EOFError Exception "
    "FloatingPointError GeneratorExit ImportError IndexError IndentationError IOError KeyError KeyboardInterrupt "
    "LookupError MemoryError ModuleNotFoundError NameError NotImplementedError OSError OverflowError PermissionError "
    "FileNotFoundError ConnectionError RecursionError RuntimeError StopIteration UnicodeError "
    "SyntaxError SystemExit TimeoutError TypeError UnboundLocalError UnicodeDecodeError UnicodeEncodeError "
    "ValueError Warning UserWarning DeprecationWarning RuntimeWarning ZeroDivisionError"
)
_ENCODINGS = ("ascii", "latin-1", "utf-8", "utf-16", "utf-32", "cp1252", "unicode_escape", "rot13", "hex", "base64")


_LATE = ("_ast_unparse", "_pylong", "_sha2")
"""What newer versions of Python load when ``ast.unparse``, a division of large integers or a text as seed needs it."""

_BY_COMPUTED_NAME = ("getattr", "attrgetter", "methodcaller")


def warm(optional: Iterable[str] = ()) -> None:
    """Import every allow-listed module and whatever it loads late; call it once, before the jail closes.

    ``optional`` names opt-in modules (``"numpy"``): a program that asks for one must run in a process warmed with it,
    because nothing can be imported any more in the jail.
    """
    import codecs
    import hashlib
    import importlib.util

    load_all(frozenset(optional))
    for name in _LATE:
        if importlib.util.find_spec(name) is not None:
            importlib.import_module(name)
    for name in _ENCODINGS:
        codecs.lookup(name)
    for algorithm in ("md5", "sha1", "sha256", "sha512"):
        hashlib.new(algorithm).hexdigest()
    load_program(
        "class WarmEnv:\n    def reset(self, seed=None):\n        return '', {}\n    def step(self, action):\n"
        "        return '', 0.0, True, False, {}\n"
    )


def make_namespace(allow: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return the globals of a program: guarded built-ins, and the names it may use without importing them."""
    sys.modules.setdefault(PROGRAM_MODULE, types.ModuleType(PROGRAM_MODULE))  # dataclasses look a class's module up
    provided = {name: getattr(builtins, name) for name in _BUILTINS.split()}
    for value in (*provided.values(), *vars(builtins).values(), type(None)):
        if value in provided.values() or (isinstance(value, type) and issubclass(value, BaseException | type(None))):
            guards.allow_base(value)
    provided |= {
        "type": guards.safe_type,
        "getattr": guards.safe_getattr,
        "setattr": guards.safe_setattr,
        "delattr": guards.safe_delattr,
        "hasattr": guards.safe_hasattr,
        "print": silent,
        "__import__": importer(allow),
        "__build_class__": guards.build_class,
        "_sbx_getattr": guards.safe_getattr,
        "_sbx_own": guards.own,
        "_sbx_type": type,
        "_sbx_type_of": guards.type_of,
        "_sbx_classes": guards.own_classes,
        "_sbx_object_setattr": guards.object_setattr,
        "_sbx_ABCMeta": typing.cast(Any, __import__("abc")).ABCMeta,
    }
    names: dict[str, Any] = {"__builtins__": provided, "__name__": PROGRAM_MODULE, "__doc__": None}
    for module in PREBOUND_MODULES.split():
        names[module] = load_module(module, allow)
    for module, listed in PREBOUND.items():
        for name in listed.split():
            names[name] = getattr(load_module(module, allow), name)
    if "numpy" in allow:
        names["np"] = names["numpy"] = load_module("numpy", allow)
    return names


_prepared: dict[frozenset[str], dict[str, Any]] = {}


def prepare(optional: Iterable[str] = ()) -> None:
    """Make the globals of programs ready; call it after :func:`harden`, so that every fork has them at once."""
    for allow in (frozenset[str](), frozenset(optional)):
        _prepared[allow] = make_namespace(allow)


@dataclass(slots=True)
class Module:
    """A program's module after its body ran: its environment class, all classes it has made so far, its globals."""

    environment: type
    classes: set[type]
    names: dict[str, Any] = field(default_factory=dict)
    users: int = 0  # instances
    context: decimal.Context | None = None  # of decimal arithmetic, where the program can change it

    def release(self) -> None:
        """An instance is gone. With the last one goes what the module holds; waiting for the garbage collector, which
        counts objects and not bytes, would let modules with large tables pile up.
        """
        self.users -= 1
        if self.users == 0:
            self.names.clear()
            self.classes.clear()


@dataclass(frozen=True, slots=True)
class Compiled:
    """A program that passed the policy; each :meth:`execute` gives module and classes anew."""

    code: types.CodeType
    allow: frozenset[str]
    changes_context: bool = False  # of decimal arithmetic: a state of the whole process otherwise
    stateless: bool = False  # one module is as good as one for each instance

    def execute(self) -> Module:
        """Run the module body.

        Raises:
            ProtocolViolation: if there is no environment class, or it lacks ``reset`` or ``step``.
            BaseException: whatever the module body raises.
        """
        ready = _prepared.get(self.allow)
        if ready is None:
            ready = _prepared[self.allow] = make_namespace(self.allow)
        classes = guards.own_classes = set()
        namespace = {**ready, "__builtins__": {**ready["__builtins__"], "_sbx_classes": classes}}
        context = decimal.DefaultContext.copy() if self.changes_context else None
        if context is not None:
            decimal.setcontext(context)
        exec(self.code, namespace)
        return Module(_environment_class(self.code, namespace), classes, namespace, context=context)


def load_program(source: str, allow: frozenset[str] = frozenset()) -> type:
    """Compile and run ``source``; return its environment class: the last one whose name ends in ``Env``.

    Raises:
        PolicyViolation: if the policy refuses the source (it is not run).
        ProtocolViolation: if there is no such class, or it lacks ``reset`` or ``step``.
        BaseException: whatever the module body raises.
    """
    return compile_source(source, allow).execute().environment


def compile_source(source: str, allow: frozenset[str] = frozenset()) -> Compiled:
    """Compile ``source``.

    Raises:
        PolicyViolation: if the policy refuses it.
    """
    collecting = gc.isenabled()
    gc.disable()  # a syntax tree is no garbage while it is worked on
    try:
        code, stateless = compile_shareable(source, allow)
        changes_context = _may_change_context(source)
        return Compiled(code, frozenset(allow), changes_context, stateless and not changes_context)
    finally:
        if collecting:
            gc.enable()


def _may_change_context(source: str) -> bool:
    """Whether the program may reach the context of decimal arithmetic, by name or by a computed one."""
    text = source if source.isascii() else unicodedata.normalize("NFKC", source)  # as identifiers are read
    return "ontext" in text or ("decimal" in text and any(word in text for word in _BY_COMPUTED_NAME))


def _environment_class(code: types.CodeType, namespace: dict[str, Any]) -> type:
    found = [
        value
        for name, value in namespace.items()
        if name.endswith("Env") and isinstance(value, type) and value.__module__ == PROGRAM_MODULE
    ]
    if not found:
        raise ProtocolViolation(
            'no class whose name ends in "Env" is defined at the top level; name the environment class like MazeEnv'
        )
    cls = max(found, key=lambda value: _order(code, value))
    for method in ("reset", "step"):
        if not callable(getattr(cls, method, None)):
            raise ProtocolViolation(f"class {cls.__name__} has no method {method}; define {method} in it")
    return cls


def _order(code: types.CodeType, cls: type) -> int:
    """Return the line of the class statement, so that the last class wins whatever the order of names."""
    lines = [
        constant.co_firstlineno
        for constant in code.co_consts
        if isinstance(constant, types.CodeType) and constant.co_name == cls.__name__
    ]
    return max(lines, default=0)
