"""The part of the policy about names, attributes, keywords and imports."""

from __future__ import annotations

import ast
import string
from typing import Any

from RestrictedPython import RestrictingNodeTransformer

from .allowlist import import_refusal, missing_name, public_names
from .bindings import Bindings
from .names import (
    CLASS_DUNDERS,
    GUARDED_ATTRIBUTES,
    MODULE_DUNDERS,
    NUMPY_GUARDED,
    READABLE_DUNDER_NAMES,
    RESERVED_PREFIX,
    UNAVAILABLE_NAMES,
    attribute_refusal,
    is_dunder,
    is_private,
)
from .types import Reason

_NODE_ADVICE = {
    "AsyncFunctionDef": '"async" is not available; write a plain function',
    "AsyncFor": '"async for" is not available; use "for"',
    "AsyncWith": '"async with" is not available; use "with"',
    "Await": '"await" is not available; call the function',
    "TryStar": '"except*" is not available; use "except"',
    "TypeAlias": '"type X = ..." is not available; write X = ...',
    "TemplateStr": "template strings are not available; use an f-string",
    "Interpolation": "template strings are not available; use an f-string",
}


class NamePolicy(RestrictingNodeTransformer):  # type: ignore[misc]
    """Names, attributes and imports; collects :class:`Reason` objects in ``reasons``."""

    def __init__(self, bindings: Bindings, allow: frozenset[str]) -> None:
        super().__init__()
        self.bindings = bindings
        self.allow = allow
        self.reasons: list[Reason] = []
        self.import_may_fail = False  # inside a try statement that catches ImportError
        self.guarded = GUARDED_ATTRIBUTES | NUMPY_GUARDED if "numpy" in allow else GUARDED_ATTRIBUTES

    # -- reporting -------------------------------------------------------------------------------
    def refuse(self, node: ast.AST, message: str) -> None:
        """Record a refusal at ``node``."""
        self.reasons.append(Reason(getattr(node, "lineno", 0), getattr(node, "col_offset", 0), message))

    def error(self, node: ast.AST, info: str) -> None:
        """Record what RestrictedPython itself refuses."""
        self.refuse(node, info)

    def warn(self, node: ast.AST, info: str) -> None:
        """Drop RestrictedPython's warnings; nothing reads them."""

    def not_allowed(self, node: ast.AST) -> None:
        """Refuse a kind of statement, by its advice if there is one."""
        kind = type(node).__name__
        self.refuse(node, _NODE_ADVICE.get(kind, f"{kind} syntax is not available; write it in another way"))

    def node_contents_visit(self, node: ast.AST) -> ast.AST:
        """Visit the parts of ``node`` and return it."""
        visited: ast.AST = super().node_contents_visit(node)
        return visited

    # -- names ------------------------------------------------------------------------------------
    def in_class_body(self) -> bool:
        """Whether the statement being visited stands directly in a class body."""
        raise NotImplementedError

    def is_receiver(self, node: ast.expr, *, touch: bool = False) -> bool:
        """Whether ``node`` is provably the method's own receiver; ``touch`` asks for the check at its start."""
        raise NotImplementedError

    def bind(self, node: ast.AST, name: str | None) -> None:
        """Check a name that is being bound."""
        if name is None:
            return
        if name.startswith(RESERVED_PREFIX):
            self.refuse(node, f'names that start with "{RESERVED_PREFIX}" are reserved; choose another name')
        elif is_dunder(name) and not self._may_bind_dunder(name):
            self.refuse(node, f'"{name}" cannot be set; use a plain name')
        elif self.in_class_body():
            refusal = attribute_refusal(name, reading=True)
            if refusal and not is_dunder(name):
                self.refuse(node, refusal)

    def _may_bind_dunder(self, name: str) -> bool:
        return name in (CLASS_DUNDERS if self.in_class_body() else MODULE_DUNDERS)

    def check_name(self, node: ast.AST, name: str | None, allow_magic_methods: bool = False) -> None:
        """RestrictedPython's hook for argument names."""
        self.bind(node, name)

    def visit_Name(self, node: ast.Name) -> ast.AST:  # noqa: N802
        """Check one name."""
        name = node.id
        if not isinstance(node.ctx, ast.Load):
            self.bind(node, name)
        elif name.startswith(RESERVED_PREFIX):
            self.refuse(node, f'names that start with "{RESERVED_PREFIX}" are reserved; choose another name')
        elif is_dunder(name) and name not in READABLE_DUNDER_NAMES:
            advice = UNAVAILABLE_NAMES.get(name, "use a plain name")
            self.refuse(node, f'"{name}" is not available; {advice}')
        elif name in UNAVAILABLE_NAMES and self.is_builtin(name):
            self.refuse(node, f'"{name}" is not available; {UNAVAILABLE_NAMES[name]}')
        return node

    def visit_Global(self, node: ast.Global) -> ast.AST:  # noqa: N802
        """Check the names of a ``global`` statement."""
        for name in node.names:
            self.bind(node, name)
        return node

    def visit_Nonlocal(self, node: ast.Nonlocal) -> ast.AST:  # noqa: N802
        """Check the names of a ``nonlocal`` statement."""
        for name in node.names:
            self.bind(node, name)
        return node

    # -- attributes -------------------------------------------------------------------------------
    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:  # noqa: N802
        """Settle what the name decides; insert a guard for what only the object decides."""
        reading = isinstance(node.ctx, ast.Load)
        if reading and node.attr == "__setattr__" and self._is_builtin_name(node.value, "object"):
            return ast.copy_location(ast.Name("_sbx_object_setattr", ast.Load()), node)
        refusal = attribute_refusal(node.attr, reading=reading)
        if refusal:
            self.refuse(node, refusal)
            return node
        module = self.module_of(node.value)
        if module is not None:
            self._check_module_attribute(node, module, reading)
        if reading and node.attr in self.guarded:
            if node.attr == "format" and _is_plain_format(node.value):
                return node
            if node.attr == "__init__" and (self.is_receiver(node.value, touch=True) or self._is_super(node.value)):
                return self.node_contents_visit(node)
            return self.guard_call("_sbx_getattr", node, self.visit(node.value), ast.Constant(node.attr))
        if (is_private(node.attr) or not reading) and not self._is_own(node.value, reading):
            node.value = self.guard_call("_sbx_own", node, self.visit(node.value))
            return node
        return self.node_contents_visit(node)

    def _is_own(self, value: ast.expr, reading: bool) -> bool:
        if self.is_receiver(value, touch=True):
            return True
        if not reading:
            return False
        return self._is_super(value) or (self._is_super(value, 2) and self.is_receiver(value.args[1], touch=True))  # type: ignore[attr-defined]

    def _is_super(self, node: ast.expr, arguments: int = 0) -> bool:
        """Whether ``node`` is a call of the built-in with so many arguments.

        Without arguments the receiver is an instance of the program's own class, as CPython checks itself.
        """
        if not (isinstance(node, ast.Call) and self._is_builtin_name(node.func, "super")):
            return False
        return len(node.args) == arguments and not node.keywords

    def _is_builtin_name(self, node: ast.expr, name: str) -> bool:
        return isinstance(node, ast.Name) and node.id == name and self.is_builtin(name)

    def is_builtin(self, name: str) -> bool:
        """Whether ``name`` can only mean the built-in in the current scope."""
        return self.bindings.is_builtin(name, in_class_body=self.in_class_body())

    def module_of(self, node: ast.expr) -> str | None:
        """Return the module that an expression names, if that is certain."""
        if isinstance(node, ast.Name):
            return self.bindings.modules.get(node.id)
        if isinstance(node, ast.Attribute):
            parent = self.module_of(node.value)
            dotted = f"{parent}.{node.attr}"
            return dotted if parent is not None and public_names(dotted, self.allow) is not None else None
        return None

    def _check_module_attribute(self, node: ast.Attribute, module: str, reading: bool) -> None:
        names = public_names(module, self.allow)
        if names is None:
            return  # the import itself was refused
        if not reading:
            self.refuse(node, f'module "{module}" is read-only; keep "{node.attr}" in a variable of your own')
        elif node.attr not in names and node.attr != "__name__":
            self.refuse(node, missing_name(module, node.attr, self.allow))

    def guard_call(self, guard: str, at: ast.AST, *arguments: ast.expr) -> ast.Call:
        """Return a call of a run-time guard, at the place of ``at``."""
        call = ast.Call(ast.Name(guard, ast.Load()), list(arguments), [])
        return ast.fix_missing_locations(ast.copy_location(call, at))

    def visit_Call(self, node: ast.Call) -> ast.AST:  # noqa: N802
        """Check keyword names; calls themselves stay native (``type(x)`` goes straight to its guard)."""
        for keyword in node.keywords:
            if keyword.arg and (is_dunder(keyword.arg) or keyword.arg.startswith(RESERVED_PREFIX)):
                self.refuse(keyword, f'keyword "{keyword.arg}" is not available; use a plain name')
        plain = len(node.args) == 1 and not node.keywords and not isinstance(node.args[0], ast.Starred)
        if plain and self._is_builtin_name(node.func, "type"):
            node.func = ast.copy_location(ast.Name("_sbx_type_of", ast.Load()), node.func)
            node.args = [self.visit(node.args[0])]
            return node
        return self.node_contents_visit(node)

    # -- imports ----------------------------------------------------------------------------------
    def visit_Import(self, node: ast.Import) -> ast.AST:  # noqa: N802
        """Allow the listed modules."""
        self._refuse_lazy(node)
        for alias in node.names:
            if public_names(alias.name, self.allow) is None and not self.import_may_fail:
                self.refuse(node, import_refusal(alias.name, self.allow))
            self.bind(node, alias.asname or alias.name.partition(".")[0])
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:  # noqa: N802
        """Allow the listed names of listed modules; a star import is spelt out."""
        self._refuse_lazy(node)
        module = node.module or ""
        if module == "__future__" and not node.level:
            return self._future(node)
        names = public_names(module, self.allow)
        if names is None and not node.level and self.import_may_fail:
            for alias in node.names:
                self.bind(node, alias.asname or alias.name)
            return node
        if node.level or names is None:
            relative = "relative imports are not available; import a module by its name"
            self.refuse(node, relative if node.level else import_refusal(module, self.allow))
            return node
        if [alias.name for alias in node.names] == ["*"]:
            node.names = [ast.alias(name) for name in sorted(names)]
            return ast.fix_missing_locations(node)
        for alias in node.names:
            if alias.name not in names and public_names(f"{module}.{alias.name}", self.allow) is None:
                self.refuse(node, missing_name(module, alias.name, self.allow))
            self.bind(node, alias.asname or alias.name)
        return node

    def _future(self, node: ast.ImportFrom) -> ast.AST:
        unknown = [alias.name for alias in node.names if alias.name != "annotations"]
        if unknown:
            self.refuse(node, f'"from __future__ import {unknown[0]}" is not available; remove it')
        return ast.copy_location(ast.Pass(), node)

    def _refuse_lazy(self, node: Any) -> None:
        if getattr(node, "is_lazy", 0):
            self.refuse(node, "lazy imports are not available; import at the top")


def _is_plain_format(node: ast.expr) -> bool:
    """Whether ``node`` is a literal string whose fields name no attributes, so that ``.format`` may stay native."""
    if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        return False
    try:
        parts = list(string.Formatter().parse(node.value))
    except ValueError:
        return True  # raises the same error when it runs
    return all(
        not (field and ("." in field or "[" in field)) and not (spec and "{" in spec) for _, field, spec, _ in parts
    )
