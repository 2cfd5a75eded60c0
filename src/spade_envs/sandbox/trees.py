"""Fast walks over syntax trees as the parser makes them: every source is walked several times before it runs."""

from __future__ import annotations

import ast
from collections.abc import Iterable

_LEAVES = frozenset(
    kind
    for base in (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
    for kind in base.__subclasses__()
)


def walk(*trees: ast.AST) -> list[ast.AST]:
    """Return all nodes of the trees but operators and contexts, the outer ones first."""
    found = list(trees)
    for node in found:  # grows while it is read
        for value in vars(node).values():
            if type(value) is list:
                found += [item for item in value if isinstance(item, ast.AST) and type(item) not in _LEAVES]
            elif isinstance(value, ast.AST) and type(value) not in _LEAVES:
                found.append(value)
    return found


def children(nodes: Iterable[ast.AST]) -> list[ast.AST]:
    """Return the children of all ``nodes``, operators and contexts included."""
    found: list[ast.AST] = []
    for node in nodes:
        for value in vars(node).values():
            if type(value) is list:
                found += [item for item in value if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST):
                found.append(value)
    return found
