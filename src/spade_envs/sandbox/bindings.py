"""What the names of a source are bound to, as far as that can be read off the source.

A name counts as a module (or as the built-in of that name) only when nothing in the source binds it to anything
else. The policy then refuses a missing module attribute with its line, instead of leaving an ``AttributeError`` that
some bare ``except:`` would swallow.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from .allowlist import PREBOUND_MODULES
from .trees import walk


@dataclass(slots=True)
class Bindings:
    """The result of one pass over a module."""

    bound: set[str] = field(default_factory=set)  # names bound by anything but an import of a module
    modules: dict[str, str] = field(default_factory=dict)  # name -> module
    fields: dict[str, list[str]] = field(default_factory=dict)  # class -> fields in order (dataclass, NamedTuple)
    methods: set[str] = field(default_factory=set)  # names of methods: bound in class bodies, nowhere else
    postponed: bool = False  # "from __future__ import annotations"

    def is_builtin(self, name: str, *, in_class_body: bool = False) -> bool:
        """Whether ``name`` can only mean the built-in (or what is bound before the program runs)."""
        if in_class_body and name in self.methods:
            return False
        return name not in self.bound and name not in self.modules


def collect(tree: ast.Module) -> Bindings:
    """Read the bindings of ``tree``."""
    result = Bindings()
    imported: dict[str, set[str]] = {}
    nodes = [node for node in walk(tree) if isinstance(node, BINDERS)]
    methods = {
        id(item)
        for node in nodes
        if isinstance(node, ast.ClassDef)
        for item in node.body
        if isinstance(item, ast.FunctionDef)
    }
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                target = alias.name if alias.asname else alias.name.partition(".")[0]
                imported.setdefault(alias.asname or target, set()).add(target)
        elif isinstance(node, ast.ImportFrom) and node.module == "__future__":
            result.postponed = True
        elif isinstance(node, ast.FunctionDef) and id(node) in methods:
            result.methods.add(node.name)
        else:
            result.bound.update(bound_names(node))
    for name in PREBOUND_MODULES.split():
        if name not in result.bound and name not in imported:
            result.modules[name] = name
    for name, targets in imported.items():
        if len(targets) == 1 and name not in result.bound:
            result.modules[name] = next(iter(targets))
        else:
            result.bound.add(name)
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef):
            names = _field_names(statement)
            if names is not None:
                result.fields[statement.name] = names
    return result


BINDERS = (
    ast.Name,
    ast.arg,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.ExceptHandler,
    ast.MatchAs,
    ast.MatchStar,
    ast.MatchMapping,
    ast.Import,
    ast.ImportFrom,
    ast.Global,
    ast.Nonlocal,
)
"""Nodes that may bind a name by themselves: those for which :func:`bound_names` may yield something."""


def bound_names(node: ast.AST) -> Iterator[str]:
    """Yield the names that ``node`` itself binds (not those that its children bind)."""
    if isinstance(node, ast.Name):
        if not isinstance(node.ctx, ast.Load):
            yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
        if node.name:
            yield node.name
    elif isinstance(node, ast.MatchMapping):
        if node.rest:
            yield node.rest
    elif isinstance(node, ast.Import | ast.ImportFrom):
        for alias in node.names:
            yield alias.asname or alias.name.partition(".")[0]
    elif isinstance(node, ast.Global | ast.Nonlocal):
        yield from node.names


def _field_names(node: ast.ClassDef) -> list[str] | None:
    """Return the positional fields of a plain dataclass or NamedTuple, or None for any other class."""
    decorators = [item.func if isinstance(item, ast.Call) else item for item in node.decorator_list]
    is_dataclass = any(_last_name(item) == "dataclass" for item in decorators) and not node.bases
    is_tuple = [_last_name(base) for base in node.bases] == ["NamedTuple"]
    if not (is_dataclass or is_tuple):
        return None
    annotated = [item for item in node.body if isinstance(item, ast.AnnAssign) and not is_pseudo_field(item.annotation)]
    return [item.target.id for item in annotated if isinstance(item.target, ast.Name)]


_PSEUDO_FIELDS = ("ClassVar", "InitVar", "KW_ONLY")


def is_pseudo_field(annotation: ast.expr) -> bool:
    """Whether an annotation is ``ClassVar``, ``InitVar`` (also subscripted) or ``KW_ONLY``."""
    head = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    if isinstance(head, ast.Constant) and isinstance(head.value, str):
        return head.value.removeprefix("typing.").removeprefix("dataclasses.").startswith(_PSEUDO_FIELDS)
    return _last_name(head) in _PSEUDO_FIELDS


def _last_name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
