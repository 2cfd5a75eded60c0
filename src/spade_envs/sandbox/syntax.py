"""The part of ``ast`` that reads arithmetic: calculators parse an expression and walk it, instead of ``eval``.

Node classes answer ``isinstance`` and ``type(node)``, but can be neither called nor derived from: library code reads
``_fields`` of nodes as attribute names. Nodes come from :func:`parse` alone, and are read-only like all that a program
did not define.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from typing import Any

from .guards import Refused, replace_type, stand_in

MAX_CHARS = 10_000

NODES = (
    "AST Module Expression Expr expr operator unaryop boolop cmpop BinOp UnaryOp BoolOp Compare IfExp Constant Num Str "
    "Name Load Call Tuple List Dict Set Subscript Slice Add Sub Mult Div FloorDiv Mod Pow BitAnd BitOr BitXor LShift "
    "RShift USub UAdd Not Invert And Or Eq NotEq Lt LtE Gt GtE Is IsNot In NotIn"
)
"""Node classes that are handed out."""


def literal_eval(text: str) -> Any:
    """``ast.literal_eval`` of text."""
    if not isinstance(text, str):
        raise Refused(f"literal_eval takes a str, not {type(text).__name__}")
    return ast.literal_eval(str.__str__(text))


def parse(source: str, filename: str = "<unknown>", mode: str = "exec") -> ast.AST:
    """``ast.parse`` of text of at most ``MAX_CHARS`` characters; ``mode`` is "exec" or "eval"."""
    if not isinstance(source, str):
        raise Refused(f"ast.parse takes a str, not {type(source).__name__}")
    if mode not in ("exec", "eval"):
        raise ValueError('ast.parse: mode must be "exec" or "eval"')
    text = str.__str__(source)
    if len(text) > MAX_CHARS:
        raise ValueError(f"ast.parse: the text has {len(text)} characters; at most {MAX_CHARS} are allowed")
    return ast.parse(text, mode=str.__str__(mode))


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """``ast.walk`` of a node that :func:`parse` made."""
    return ast.walk(_node(node))


def iter_child_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """``ast.iter_child_nodes`` of a node that :func:`parse` made."""
    return ast.iter_child_nodes(_node(node))


def _node(value: Any) -> ast.AST:
    if not issubclass(type(value), ast.AST):
        raise Refused(f"expected a node from ast.parse, got a {type(value).__name__} object")
    return value  # type: ignore[no-any-return]


class NodeVisitor:
    """``ast.NodeVisitor``: calls ``visit_<class of the node>``, else :meth:`generic_visit`."""

    def visit(self, node: ast.AST) -> Any:
        """Visit one node."""
        method = getattr(self, f"visit_{type(_node(node)).__name__}", None)
        return self.generic_visit(node) if method is None else method(node)

    def generic_visit(self, node: ast.AST) -> Any:
        """Visit the children of a node."""
        for child in iter_child_nodes(node):
            self.visit(child)


def _classes() -> Iterator[tuple[str, Any]]:
    for name in NODES.split():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Num and Str are deprecated, and gone in Python 3.14
            real = getattr(ast, name, None)
        if real is None:
            yield name, _constant_class(name)
            continue
        substitute = _node_class(name, real)
        replace_type(real, substitute)
        yield name, substitute


_GONE: dict[str, tuple[type, ...]] = {"Num": (int, float, complex), "Str": (str,)}
"""Classes of constants until Python 3.13, by the values; programs still ask for them."""


def _constant_class(name: str) -> Any:
    def test(value: Any) -> bool:
        return type(value) is ast.Constant and type(value.value) in _GONE[name]

    return stand_in(name, test, lambda other: False)


def _node_class(name: str, real: Any) -> Any:
    return stand_in(name, lambda value: isinstance(value, real), lambda other: issubclass(other, real))


AST: dict[str, Any] = {
    "literal_eval": literal_eval,
    "parse": parse,
    "walk": walk,
    "iter_child_nodes": iter_child_nodes,
    "NodeVisitor": NodeVisitor,
    **dict(_classes()),
}
"""Replacements for names of the ``ast`` module."""
