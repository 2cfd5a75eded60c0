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

from .definitions import TRUSTED, Definitions, Table, name_of

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
    for name in (*"add sub mul mod or and xor matmul truediv floordiv divmod pow lshift rshift".split(),)  # noqa: SIM905
)
_COMPARISONS = frozenset(("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__", "__contains__"))
_OF_KEYS = frozenset(("list", "tuple", "set", "frozenset", "enumerate", "sorted", "min", "max", "any", "all", "zip"))
_OF_KEYS |= {"reversed", "deque"}
"""Readers that see nothing of a dictionary but its keys."""
_KEY_METHODS = _READER_METHODS - {"choice", "choices", "update"}
_ONE_ARGUMENT = frozenset(("min", "max", "sum"))  # of several, they may return one as it is
_REACHING = frozenset(
    ("attrgetter", "methodcaller", "fields", "_field_defaults", "__members__", "register", "SimpleNamespace")
)
"""Names of what reads attributes by text, or shows the insides of classes."""
_MODULES = frozenset(("operator", "dataclasses", "decimal", "types", "enum", "collections", "typing"))
"""Modules with such names, which must not get into variables either."""
_STARRED = frozenset(("typing", "math", "random", "itertools", "string", "collections"))
_INDEXING = frozenset(("__getitem__", "__setitem__", "__delitem__", "__missing__"))
_KEEP_KEYS = frozenset(("slice", "defaultdict", "args"))
"""Where slices get into variables; from Python 3.12 they can be keys, and arguments of a KeyError."""
_ALL_TRUSTED = TRUSTED | _READERS | _FUNCTION_TAKERS | _CHECKS | {"type", "getattr", "setattr"}


def is_stateless(tree: ast.Module) -> bool:
    """Return whether instances of the program can share its module without noticing each other."""
    definitions = Definitions()
    return definitions.module(tree) and _Uses(definitions, tree).harmless()


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
        self._modules = set(_MODULES)
        self._slices = False
        for node in self._parents:
            self._note(node)
        self._operators = not self._bound.isdisjoint(_OPERATORS)
        self._comparisons = not self._bound.isdisjoint(_COMPARISONS)
        self._slices |= not self._bound.isdisjoint(_INDEXING)
        self._objects = definitions.classes | definitions.functions | self._class_aliases

    def _note(self, node: ast.AST) -> None:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            self._bound.add(node.name)
            self._trusting &= node.name not in _ALL_TRUSTED
            if isinstance(node, ast.FunctionDef):
                decorated = any(name_of(decorator) == "classmethod" for decorator in node.decorator_list)
                if decorated or node.name in _CLASS_FIRST:
                    first = [*node.args.posonlyargs, *node.args.args][:1]
                    self._class_aliases.update(argument.arg for argument in first)
                    self._trusting &= bool(first)
        elif isinstance(node, ast.alias):
            self._trusting &= self._plain_import(node)
        elif isinstance(node, ast.Call):
            self._note_call(node)
        elif isinstance(node, ast.Subscript):
            self._slices |= isinstance(node.slice, ast.Slice) and isinstance(node.ctx, ast.Store)
        elif isinstance(node, ast.keyword):
            self._bound.add(node.arg or "")
        elif isinstance(node, ast.arg):
            self._bound.add(node.arg)
        elif isinstance(node, ast.Name | ast.Attribute):
            self._slices |= name_of(node) in _KEEP_KEYS
            if not isinstance(node.ctx, ast.Load):
                self._bound.add(node.id if isinstance(node, ast.Name) else node.attr)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
            self._bound.add(node.name or "")
        elif isinstance(node, ast.MatchMapping):
            self._bound.add(node.rest or "")

    def _plain_import(self, node: ast.alias) -> bool:
        source = self._parents[node]
        if isinstance(source, ast.Import):
            if node.name in _MODULES:
                self._modules.add(node.asname or node.name)
            return node.asname not in _ALL_TRUSTED
        renamed = node.asname is not None and (node.name in _ALL_TRUSTED or node.asname in _ALL_TRUSTED)
        starred = node.name == "*" and getattr(source, "module", "") not in _STARRED
        return not renamed and not starred and node.name not in _REACHING and node.asname not in _MODULES

    def _note_call(self, node: ast.Call) -> None:
        """Note attributes that are named in text: of named tuples."""
        name = name_of(node.func)
        if name not in ("namedtuple", "NamedTuple"):
            return
        for part in (*node.args, *(keyword.value for keyword in node.keywords if keyword.arg != "defaults")):
            texts = part.elts if isinstance(part, ast.List | ast.Tuple) else [part]
            for text in texts:
                if isinstance(text, ast.Constant):
                    self._bound.update(str(text.value).replace(",", " ").split())
                else:
                    self._bound |= _READER_METHODS

    def harmless(self) -> bool:
        """Return whether every use is one that changes and keeps nothing."""
        return self._trusting and all(self._use(node) for node in self._parents)

    def _use(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Global | ast.AsyncFunctionDef):
            return False
        if isinstance(node, ast.Attribute | ast.Name) and name_of(node) in _CONTEXTS:
            return False
        if isinstance(node, ast.MatchClass):
            known = self._known
            shared = known.classes | known.static | set(known.tables) | _REACHING | {"mapping"}
            return shared.isdisjoint(node.kwd_attrs)
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            return self._root(node) not in self._objects
        return not isinstance(node, ast.Name) or self._name(node)

    def _attribute(self, node: ast.Attribute) -> bool:
        known, sunder = self._known, node.attr.startswith("_") and node.attr.endswith("_")
        if node.attr in _REACHING or (known.tables and node.attr == "mapping"):
            return node.attr == "register" and name_of(node.value) not in self._objects
        if known.enumerations and sunder and not node.attr.startswith("__"):
            return False
        if node.attr in known.classes and isinstance(node.ctx, ast.Load) and not self._class_use(node):
            return False
        if isinstance(node.ctx, ast.Load) and not self._method_use(node):
            return False
        if not isinstance(node.ctx, ast.Load):
            return self._may_be_written(node)
        if node.attr in self._known.tables:
            return self._read(node, self._known.tables[node.attr])
        return node.attr != "__class__" or self._only_named(node)

    def _method_use(self, node: ast.Attribute) -> bool:
        """Where reading a method gives a function, an object with attributes, it must be called at once."""
        known, parent = self._known, self._parents[node]
        of_class = name_of(node.value) in self._objects
        if node.attr not in known.static and not (of_class and node.attr in known.methods | {"__init__"}):
            return True
        if not isinstance(parent, ast.Call) or parent.func is not node:
            return node.attr in known.static and self._function_use(node)
        if not of_class or not known.enumerations or node.attr in known.static:
            return True
        # a member of an enumeration as the receiver
        return not parent.args or (isinstance(parent.args[0], ast.Name) and self._is_receiver(parent.args[0]))

    def _name(self, node: ast.Name) -> bool:
        known = self._known
        if node.id in ("attrgetter", "methodcaller", "SimpleNamespace") or node in known.targets:
            return node in known.targets
        if node.id in self._modules and isinstance(node.ctx, ast.Load):
            return isinstance(self._parents[node], ast.Attribute)
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
        known = self._known
        if not named or known.tables or known.enumerations or known.static:
            return False
        return node.id == "setattr" or (len(call.args) > 1 and self._plain_text(call.args[1]))

    def _plain_text(self, node: ast.expr) -> bool:
        """Whether a text surely is no dunder and no class of the program: it begins with a letter."""
        while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            node = node.left
        if isinstance(node, ast.JoinedStr) and node.values:
            node = node.values[0]
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or not node.value:
            return False
        nested = any(name.startswith(node.value) for name in self._known.classes)
        return not node.value.startswith("__") and node.value != "_" and not nested and node.value not in _REACHING

    def _only_named(self, node: ast.AST) -> bool:
        parent = self._parents[node]
        return isinstance(parent, ast.Attribute) and parent.attr == "__name__" and isinstance(parent.ctx, ast.Load)

    def _class_use(self, node: ast.Name | ast.Attribute) -> bool:
        """Called, named as a base, a type to check for or to catch, iterated over, or read a constant from."""
        parent = self._parents[node]
        if isinstance(parent, ast.Call):
            counted = name_of(node) in self._known.enumerations and self._builtin(parent) in ("list", "len", "tuple")
            return parent.func is node or self._builtin(parent) in _CHECKS or counted
        if isinstance(parent, ast.For | ast.comprehension):
            return name_of(node) in self._known.enumerations and parent.iter is node
        if isinstance(parent, ast.Tuple):
            above = self._parents[parent]
            if isinstance(above, ast.ExceptHandler):
                return True
            if isinstance(above, ast.Call) and self._builtin(above) in _CHECKS:
                return True
        if isinstance(parent, ast.Attribute):
            return isinstance(parent.ctx, ast.Load) and parent.attr != "register"
        if isinstance(parent, ast.ClassDef):  # a class in a function can get into variables, with what it inherits
            return self._function_around(parent) is None
        return isinstance(parent, ast.ExceptHandler | ast.Raise | ast.MatchClass) or self._annotates(node)

    def _annotates(self, node: ast.AST) -> bool:
        """Annotations outside classes are dropped, those in classes are read by ``dataclass`` alone."""
        while not isinstance(parent := self._parents[node], ast.stmt | ast.arg):
            if not isinstance(parent, ast.Subscript | ast.Tuple | ast.BinOp | ast.Attribute):
                return False
            node = parent
        if isinstance(parent, ast.arg | ast.AnnAssign):
            return parent.annotation is node
        return isinstance(parent, ast.FunctionDef) and parent.returns is node

    def _function_use(self, node: ast.expr) -> bool:
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
            if parent.value is not node or not isinstance(parent.ctx, ast.Load):
                return False
            if inner.depth == 0:
                return True
            index = parent.slice
            sliced = isinstance(index, ast.Slice) or (self._slices and not isinstance(index, ast.Constant))
            return self._read(parent, Table(table.depth, by_key=False) if sliced else inner)
        if isinstance(parent, ast.FormattedValue):
            return True
        if isinstance(parent, ast.Compare):
            last = parent.comparators[-1] is node and isinstance(parent.ops[-1], ast.In | ast.NotIn)
            return last and (inner.depth == 0 or not self._comparisons)
        if isinstance(parent, ast.IfExp):
            return parent.test is node or self._read(parent, table)
        if isinstance(parent, ast.Attribute):
            return self._method(parent, table, inner)
        flat = inner.depth == 0
        elements_are_constants = flat or table.by_key
        if isinstance(parent, ast.BinOp):  # the other side's operators would get the table itself
            return flat and not self._operators
        if isinstance(parent, ast.Starred):
            return elements_are_constants
        if isinstance(parent, ast.For | ast.comprehension):
            return parent.iter is node and elements_are_constants
        if not isinstance(parent, ast.Call) or parent.func is node:
            return False
        if isinstance(parent.func, ast.Attribute):
            reader = parent.func.attr in _READER_METHODS and parent.func.attr not in self._bound
            return reader and (flat or (table.by_key and parent.func.attr in _KEY_METHODS))
        name = self._builtin(parent)
        if name in _ONE_ARGUMENT and len(parent.args) != 1:
            return False
        return (
            name in ("len", "str", "repr", "bool")
            or (name in _READERS and flat)
            or (name in _OF_KEYS and elements_are_constants)
        )

    def _method(self, node: ast.Attribute, table: Table, inner: Table) -> bool:
        call = self._parents[node]
        if node.attr not in _TABLE_METHODS or not isinstance(call, ast.Call) or call.func is not node:
            return False
        if inner.depth == 0 or node.attr == "keys":
            return True
        if node.attr in ("index", "count"):
            return not self._comparisons
        return node.attr == "get" and len(call.args) == 1 and self._read(call, inner)

    def _may_be_written(self, node: ast.Attribute) -> bool:
        """An attribute is written: of an instance, not of a class, a function or an enumeration's member."""
        if node.attr in self._known.tables:  # the instance hides the table, and may change what hides it
            return False
        root = self._root(node)
        if not root or root in self._objects or root in self._known.tables:
            return False
        if node.attr in self._known.classes or node.attr in self._known.static or self._through_shared(node):
            return False
        return not self._known.enumerations or (isinstance(node.value, ast.Name) and self._is_receiver(node.value))

    def _through_shared(self, node: ast.expr) -> bool:
        """Whether an attribute belongs to a class or a function that is read from an instance."""
        shared = self._known.classes | self._known.static
        while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
            node = node.func if isinstance(node, ast.Call) else node.value
            if isinstance(node, ast.Attribute) and node.attr in shared:
                return True
        return False

    def _is_receiver(self, node: ast.Name) -> bool:
        """Whether ``node`` is the first parameter in a method of a class that is no enumeration."""
        function = self._function_around(node)
        if function is None or not function.args.args:
            return False
        owner = self._parents.get(function)
        if node.id != function.args.args[0].arg or not isinstance(owner, ast.ClassDef):
            return False
        rebound = sum(
            isinstance(n, ast.Name) and n.id == node.id and not isinstance(n.ctx, ast.Load) for n in ast.walk(function)
        )
        static = function.name in self._known.static
        return not rebound and not static and owner.name not in self._known.enumerations

    def _function_around(self, node: ast.AST) -> ast.FunctionDef | None:
        around: ast.AST | None = node
        while around is not None and not isinstance(around, ast.FunctionDef):
            around = self._parents.get(around)
        return around

    def _root(self, node: ast.expr) -> str:
        while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
            node = node.func if isinstance(node, ast.Call) else node.value
        return node.id if isinstance(node, ast.Name) else ""
