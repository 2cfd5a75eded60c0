"""The static policy: which sources are compiled, and why others are not.

A tuned subclass of RestrictedPython's transformer (unknown node types stay refused by its ``generic_visit``). Literal
names are settled here, so ordinary attribute reads, subscripts, loops and calls compile to native bytecode; only what
depends on the object is left to :mod:`.guards`: ``.format``, ``.obj``, ``.__class__``, and writes to or private reads
from anything that is not provably the method's own receiver.

This layer is a linter and a barrier against accidents. The boundary is the process jail.
"""

from __future__ import annotations

import ast
import warnings
from types import CodeType

from .bindings import collect
from .policy_names import NamePolicy
from .policy_patterns import PatternPolicy
from .policy_scopes import ScopePolicy
from .stateless import is_stateless
from .trees import children
from .types import PolicyViolation, Reason

MAX_SOURCE_CHARS = 200_000
MAX_DEPTH = 200
"""Nesting of the syntax tree; CPython's own compiler overflows its stack not far beyond."""

FILENAME = "<environment>"


class EnvironmentPolicy(ScopePolicy, PatternPolicy, NamePolicy):
    """Checks and rewrites one module; ``reasons`` holds what it refused."""


def check(source: str, allow: frozenset[str] = frozenset()) -> tuple[Reason, ...]:
    """Return the reasons for which ``source`` is refused; none if it may run."""
    return _compile(source, frozenset(allow))[2]


def compile_program(source: str, allow: frozenset[str] = frozenset()) -> CodeType:
    """Return the code of ``source`` with its guards.

    Raises:
        PolicyViolation: with a line and a remedy for every refusal; syntax errors are refusals too.
    """
    return compile_shareable(source, allow)[0]


def compile_shareable(source: str, allow: frozenset[str] = frozenset()) -> tuple[CodeType, bool]:
    """Return the code of ``source`` and whether its instances can share a module (:mod:`stateless`).

    Raises:
        PolicyViolation: as :func:`compile_program`.
    """
    code, stateless, reasons = _compile(source, frozenset(allow))
    if code is None:
        raise PolicyViolation(reasons)
    return code, stateless


def _compile(source: str, allow: frozenset[str]) -> tuple[CodeType | None, bool, tuple[Reason, ...]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of invalid escapes and the like: nobody reads them in a worker
        tree, stateless, reasons = _transform(source, allow)
        if reasons or tree is None:
            return None, False, reasons
        code, reasons = _native_compile(tree)
        return code, stateless, reasons


def _native_compile(tree: ast.Module) -> tuple[CodeType | None, tuple[Reason, ...]]:
    try:
        # dont_inherit: this module's own __future__ imports would turn class annotations into strings
        return compile(tree, FILENAME, "exec", dont_inherit=True), ()
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        return None, (_compile_reason(error),)  # "return" outside a function, and the like


def _transform(source: str, allow: frozenset[str]) -> tuple[ast.Module | None, bool, tuple[Reason, ...]]:
    if len(source) > MAX_SOURCE_CHARS:
        said = f"the source has {len(source)} characters; at most {MAX_SOURCE_CHARS} are allowed"
        return None, False, (Reason(1, 0, said),)
    try:
        tree = ast.parse(source, FILENAME)
        deep = _too_deep(tree)
        if deep is not None:
            return None, False, (deep,)
        stateless = is_stateless(tree)  # before guards are put in
        policy = EnvironmentPolicy(collect(tree), allow)
        policy.visit(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return None, False, (_compile_reason(error),)
    reasons = tuple(sorted(set(policy.reasons), key=lambda reason: (reason.line, reason.column, reason.message)))
    return tree, stateless, reasons


def _too_deep(tree: ast.AST) -> Reason | None:
    """Measure the depth level by level (no recursion)."""
    level: list[ast.AST] = [tree]
    depth = 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            line = next((node.lineno for node in level if isinstance(node, ast.expr | ast.stmt)), 1)
            return Reason(line, 0, f"expressions or blocks are nested more than {MAX_DEPTH} deep; use a list or a loop")
        level = children(level)
    return None


def _compile_reason(error: BaseException) -> Reason:
    if isinstance(error, SyntaxError):
        return Reason(error.lineno or 0, error.offset or 0, f"syntax error: {error.msg}")
    if isinstance(error, RecursionError | MemoryError):
        return Reason(0, 0, "the source is nested too deeply to compile; use lists and loops")
    return Reason(0, 0, f"the source cannot be compiled: {error}")
