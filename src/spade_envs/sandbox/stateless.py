"""Whether a program can have state outside its instances, told from its source.

Instances of a program that cannot may share one module: nothing that one does changes what another sees, and the
interpreter runs the methods of one class faster than those of many equal ones. The answer errs on the side of "can":
anything that is not known to be harmless counts as state.

Module and class bodies must hold nothing but what :mod:`definitions` knows. A table is only ever read: subscripted,
iterated over, searched, or handed to a built-in that keeps nothing of it. Tables are followed by name alone, whatever
object the name is read from. Classes and functions, which are objects with attributes of their own, must not get into
variables, and what may be one is not written to.
"""

from __future__ import annotations

import ast

from .definitions import ENUMERATIONS, TRUSTED, Definitions, Table, name_of

_READERS = frozenset(
    ("len", "sorted", "list", "tuple", "set", "frozenset", "dict", "enumerate", "min", "max", "sum", "any", "all")
) | {"zip", "reversed", "str", "repr", "Counter", "deque", "bool", "range"}
"""Callables that keep nothing of an argument but its elements."""
_READER_METHODS = frozenset(
    ("choice", "choices", "sample", "join", "extend", "update", "union", "intersection", "difference", "issubset")
)
"""Methods that keep nothing of an argument but its elements, provided that the program defines none of that name."""
_TABLE_METHODS = frozenset(("items", "keys", "values", "get", "index", "count", "copy"))
_BY_NAME = frozenset(("getattr", "setattr", "delattr", "vars", "globals", "locals", "type", "object", "__class__"))
_FUNCTION_TAKERS = frozenset(("map", "filter", "sorted", "min", "max"))
_CHECKS = frozenset(("isinstance", "issubclass"))
_CONTEXTS = frozenset(("getcontext", "setcontext", "localcontext"))  # of decimal arithmetic
_CLASS_FIRST = frozenset(("__new__", "__init_subclass__", "__class_getitem__"))  # class methods without saying so
_OPERATORS = frozenset(
    f"__{side}{name}__"
    for side in ("", "r", "i")
    for name in ("add", "sub", "mul", "mod", "or", "and", "xor", "matmul")
)
_ALL_TRUSTED = TRUSTED | _READERS | _FUNCTION_TAKERS | _CHECKS | {"type", "getattr", "setattr"}


def is_stateless(tree: ast.Module) -> bool:
    """Return whether instances of the program can share its module without noticing each other."""
    definitions = Definitions()
    return definitions.body(tree.body) and _Uses(definitions, tree).harmless()


class _Uses:
    """Where the names of a program's definitions are used."""

    def __init__(self, definitions: Definitions, tree: ast.Module) -> None:
        self._known = definitions
        self._parents: dict[ast.AST, ast.AST] = {}
        self._bound: set[str] = set()  # names that functions bind, and those of methods
        self._class_aliases: set[str] = set()  # first parameters of class methods
        for node in ast.walk(tree):
            for child in ast.iter_child_nodes(node):
                self._parents[child] = node
        self._trusting = True  # built-ins and the like are what they are called
        for node in self._parents:
            self._note(node)
        self._operators = not self._bound.isdisjoint(_OPERATORS)
        self._objects = definitions.classes | definitions.functions | self._class_aliases

    def _note(self, node: ast.AST) -> None:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            self._bound.add(node.name)
            self._trusting &= node.name not in _ALL_TRUSTED
            if isinstance(node, ast.FunctionDef) and node.args.args:
                decorated = any(name_of(decorator) == "classmethod" for decorator in node.decorator_list)
                if decorated or node.name in _CLASS_FIRST:
                    self._class_aliases.add(node.args.args[0].arg)
        elif isinstance(node, ast.alias):
            self._trusting &= node.asname not in _ALL_TRUSTED
        elif isinstance(node, ast.arg):
            self._bound.add(node.arg)
        elif isinstance(node, ast.Name | ast.Attribute):
            if not isinstance(node.ctx, ast.Load):
                self._bound.add(node.id if isinstance(node, ast.Name) else node.attr)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
            self._bound.add(node.name or "")
        elif isinstance(node, ast.MatchMapping):
            self._bound.add(node.rest or "")

    def harmless(self) -> bool:
        """Return whether every use is one that changes and keeps nothing."""
        return self._trusting and all(self._use(node) for node in self._parents)

    def _use(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Global | ast.AsyncFunctionDef):
            return False
        if isinstance(node, ast.Attribute | ast.Name) and name_of(node) in _CONTEXTS:
            return False
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            return self._root(node) not in self._objects
        return not isinstance(node, ast.Name) or self._name(node)

    def _attribute(self, node: ast.Attribute) -> bool:
        if not isinstance(node.ctx, ast.Load):
            return self._may_be_written(node)
        if node.attr in self._known.tables:
            return self._read(node, self._known.tables[node.attr])
        return node.attr != "__class__" or self._only_named(node)

    def _name(self, node: ast.Name) -> bool:
        known = self._known
        if node.id in _BY_NAME:
            return self._by_name(node)
        if node.id in known.tables:
            return isinstance(node.ctx, ast.Store) or self._read(node, known.tables[node.id])
        if not isinstance(node.ctx, ast.Load):
            return node.id not in self._objects
        if node.id in known.classes or node.id in self._class_aliases:
            return self._class_use(node)
        return node.id not in known.functions or self._function_use(node)

    def _by_name(self, node: ast.Name) -> bool:
        """``type(x).__name__``; attributes of ``self`` by a computed name, where there is no table."""
        call = self._parents[node]
        if not isinstance(call, ast.Call) or call.func is not node or not call.args:
            return False
        if node.id == "type":
            return len(call.args) == 1 and self._only_named(call)
        subject = call.args[0]
        if node.id not in ("getattr", "setattr") or not isinstance(subject, ast.Name):
            return False
        named = subject.id in self._bound and subject.id not in self._objects
        return named and not self._known.tables and not self._known.enumerations

    def _only_named(self, node: ast.AST) -> bool:
        parent = self._parents[node]
        return isinstance(parent, ast.Attribute) and parent.attr == "__name__" and isinstance(parent.ctx, ast.Load)

    def _class_use(self, node: ast.Name) -> bool:
        """Called, named as a base, a type to check for or to catch, iterated over, or read a constant from."""
        parent = self._parents[node]
        if isinstance(parent, ast.Call):
            counted = node.id in self._known.enumerations and self._builtin(parent) in ("list", "len", "tuple")
            return parent.func is node or self._builtin(parent) in _CHECKS or counted
        if isinstance(parent, ast.For | ast.comprehension):
            return node.id in self._known.enumerations and parent.iter is node
        if isinstance(parent, ast.Tuple):
            above = self._parents[parent]
            if isinstance(above, ast.ExceptHandler):
                return True
            if isinstance(above, ast.Call) and self._builtin(above) in _CHECKS:
                return True
        if isinstance(parent, ast.Attribute):
            return isinstance(parent.ctx, ast.Load)
        return isinstance(parent, ast.ClassDef | ast.ExceptHandler | ast.Raise | ast.MatchClass) or (
            self._annotates(node)
        )

    def _annotates(self, node: ast.AST) -> bool:
        """Annotations outside classes are dropped, those in classes are read by ``dataclass`` alone."""
        while not isinstance(parent := self._parents[node], ast.stmt | ast.arg):
            if not isinstance(parent, ast.Subscript | ast.Tuple | ast.BinOp | ast.Attribute):
                return False
            node = parent
        if isinstance(parent, ast.arg | ast.AnnAssign):
            return parent.annotation is node
        return isinstance(parent, ast.FunctionDef) and parent.returns is node

    def _function_use(self, node: ast.Name) -> bool:
        parent = self._parents[node]
        if isinstance(parent, ast.keyword):
            parent = self._parents[parent]
            return isinstance(parent, ast.Call) and self._builtin(parent) in _FUNCTION_TAKERS
        return isinstance(parent, ast.Call) and (parent.func is node or self._builtin(parent) in _FUNCTION_TAKERS)

    def _builtin(self, call: ast.Call) -> str:
        """The name of the called built-in, "" if it may be something of the program's own."""
        name = call.func.id if isinstance(call.func, ast.Name) else ""
        return "" if name in self._bound or name in self._objects else name

    def _read(self, node: ast.expr, table: Table) -> bool:
        """Whether an expression that gives a table is used in a way that changes and keeps none of its containers."""
        parent = self._parents[node]
        inner = Table(table.depth - 1, by_key=False)
        if isinstance(parent, ast.Subscript):
            plain = parent.value is node and isinstance(parent.ctx, ast.Load)
            return plain and (inner.depth == 0 or isinstance(parent.slice, ast.Slice) or self._read(parent, inner))
        if isinstance(parent, ast.FormattedValue):
            return True
        if isinstance(parent, ast.Compare):
            return any(
                right is node and isinstance(operator, ast.In | ast.NotIn)
                for operator, right in zip(parent.ops, parent.comparators, strict=True)
            )
        if isinstance(parent, ast.IfExp):
            return parent.test is node or self._read(parent, table)
        if isinstance(parent, ast.Attribute):
            return self._method(parent, table, inner)
        elements_are_constants = inner.depth == 0 or table.by_key
        if isinstance(parent, ast.BinOp):  # the other side's operators would get the table itself
            return elements_are_constants and not self._operators
        if isinstance(parent, ast.Starred):
            return elements_are_constants
        if isinstance(parent, ast.For | ast.comprehension):
            return parent.iter is node and elements_are_constants
        if not isinstance(parent, ast.Call) or parent.func is node:
            return False
        if isinstance(parent.func, ast.Attribute):
            reader = parent.func.attr in _READER_METHODS and parent.func.attr not in self._bound
            return reader and elements_are_constants
        name = self._builtin(parent)
        return name in ("len", "str", "repr", "bool") or (name in _READERS and elements_are_constants)

    def _method(self, node: ast.Attribute, table: Table, inner: Table) -> bool:
        call = self._parents[node]
        if node.attr not in _TABLE_METHODS or not isinstance(call, ast.Call) or call.func is not node:
            return False
        if inner.depth == 0 or node.attr in ("keys", "index", "count"):
            return True
        return node.attr == "get" and len(call.args) == 1 and self._read(call, inner)

    def _may_be_written(self, node: ast.Attribute) -> bool:
        """An attribute is written: of an instance, not of a class, a function or an enumeration's member."""
        if node.attr in self._known.tables:  # the instance hides the table, and may change what hides it
            return False
        root = self._root(node)
        if not root or root in self._objects or root in self._known.tables:
            return False
        return not self._known.enumerations or self._in_plain_method(node)

    def _in_plain_method(self, node: ast.Attribute) -> bool:
        """Whether ``node`` is an attribute of the first parameter in a method of a class that is no enumeration."""
        function: ast.AST | None = node
        while function is not None and not isinstance(function, ast.FunctionDef):
            function = self._parents.get(function)
        if function is None or not function.args.args or not isinstance(node.value, ast.Name):
            return False
        owner = self._parents.get(function)
        own = node.value.id == function.args.args[0].arg and isinstance(owner, ast.ClassDef)
        return own and not any(name_of(base) in ENUMERATIONS for base in owner.bases)  # type: ignore[union-attr]

    def _root(self, node: ast.expr) -> str:
        while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
            node = node.func if isinstance(node, ast.Call) else node.value
        return node.id if isinstance(node, ast.Name) else ""
