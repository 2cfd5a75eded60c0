"""What the module body and the class bodies of a program define, as far as it is harmless to share.

Harmless are definitions, constants, and *tables*: lists, sets and dictionaries of constants, or of further tables.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field

ENUMERATIONS = frozenset(("Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"))
_DECORATORS = frozenset(("staticmethod", "classmethod", "property", "dataclass", "abstractmethod", "unique"))
_CONSTANT_MAKERS = frozenset(
    ("frozenset", "tuple", "range", "str", "int", "float", "bool", "abs", "round", "min", "max", "sum", "len")
)
_MODULE_MAKERS = frozenset((("re", "compile"), ("textwrap", "dedent")))
_RETURN_ARGUMENTS = frozenset(("min", "max", "sum"))  # of several, they may return one as it is
_TABLE_MAKERS = frozenset(("dict", "list", "set"))
_TEXT_METHODS = frozenset(("strip", "upper", "lower", "replace", "join", "format"))
TRUSTED = (
    _DECORATORS
    | _CONSTANT_MAKERS
    | ENUMERATIONS
    | frozenset(
        ("dict", "list", "set", "field", "re", "textwrap", "collections", "namedtuple", "setter", "deleter", "ClassVar")
    )
)
"""Names that must mean here what they mean everywhere."""
_FACTORIES = _TABLE_MAKERS | {"deque", "Counter", "str", "int", "float"}


@dataclass(slots=True)
class Table:
    """A table: how many levels of containers it has, and whether the outermost is a dictionary."""

    depth: int
    by_key: bool


@dataclass(slots=True)
class Definitions:
    """Names of the module and of its classes. :meth:`body` fills it."""

    classes: set[str] = field(default_factory=set)
    enumerations: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    tables: dict[str, Table] = field(default_factory=dict)
    constants: set[str] = field(default_factory=set)
    methods: set[str] = field(default_factory=set)
    static: set[str] = field(default_factory=set)  # methods that give the function itself when read from an instance
    targets: set[ast.AST] = field(default_factory=set)  # where the names of named tuples are bound
    _imported: set[str] = field(default_factory=set)
    _used: set[str] = field(default_factory=set)  # names whose values constants are made of
    _in_record: bool = False  # in a class whose annotated values are read by position, too

    def module(self, tree: ast.Module) -> bool:
        """Take note of the whole module; False if it defines what cannot be shared."""
        others = self.classes, self.functions, self.methods, self._imported
        return self.body(tree.body) and all(self._used.isdisjoint(names) for names in others)

    def body(self, statements: Iterable[ast.stmt], *, in_class: bool = False) -> bool:
        """Take note of a body; False if it holds anything but definitions, constants and tables."""
        return all(self._statement(statement, in_class) for statement in statements)

    def _statement(self, node: ast.stmt, in_class: bool) -> bool:
        if isinstance(node, ast.Import | ast.ImportFrom):
            self._imported |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
            return True
        if isinstance(node, ast.Pass) or _never_runs(node):
            return True
        if isinstance(node, ast.Expr):
            return isinstance(node.value, ast.Constant)
        if isinstance(node, ast.FunctionDef):
            (self.methods if in_class else self.functions).add(node.name)
            if any(name_of(decorator) == "staticmethod" for decorator in node.decorator_list):
                self.static.add(node.name)
            return _plainly_decorated(node) and self._defaults(node.args)
        if isinstance(node, ast.ClassDef):
            return self._class(node)
        if isinstance(node, ast.AnnAssign):
            return self._annotated(node, in_class)
        if isinstance(node, ast.Assign):
            return all(self._bind(target, node.value, in_class) for target in node.targets)
        return False

    def _class(self, node: ast.ClassDef) -> bool:
        self.classes.add(node.name)
        bases = {name_of(base) for base in node.bases}
        record = "NamedTuple" in bases or any(name_of(_called(d)) == "dataclass" for d in node.decorator_list)
        around, self._in_record = self._in_record, record
        tables = len(self.tables)
        plain = not node.keywords and _plainly_decorated(node) and all(map(self._base, node.bases))
        plain = plain and self.body(node.body, in_class=True)
        self._in_record = around
        if not bases.isdisjoint(ENUMERATIONS | self.enumerations):
            self.enumerations.add(node.name)
            # members give their values without naming them, and pass as receivers to methods of other bases
            return plain and len(self.tables) == tables and bases.isdisjoint(self.classes - self.enumerations)
        return plain

    def _base(self, node: ast.expr) -> bool:
        """A name, perhaps with types in brackets, or ``namedtuple(...)``."""
        return self._is_named_tuple(node) or (not isinstance(node, ast.Constant) and _plain_annotation(node))

    def _is_named_tuple(self, node: ast.expr) -> bool:
        if not isinstance(node, ast.Call) or name_of(node.func) != "namedtuple" or not _is_path(node.func):
            return False
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        return all(self._constant(part) or _flat(part) for part in given)

    def _annotated(self, node: ast.AnnAssign, in_class: bool) -> bool:
        if not isinstance(node.target, ast.Name) or (in_class and not _plain_annotation(node.annotation)):
            return False
        if node.value is None:
            return True
        tables = len(self.tables)
        of_class = isinstance(node.annotation, ast.Subscript) and name_of(node.annotation.value) == "ClassVar"
        bound = self._bind(node.target, node.value, in_class)
        return bound and (of_class or not (in_class and self._in_record) or len(self.tables) == tables)

    def _bind(self, target: ast.expr, value: ast.expr, in_class: bool) -> bool:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            return all(self._bind(*pair, in_class) for pair in zip(target.elts, value.elts))
        if not isinstance(target, ast.Name) or target.id in self.tables:
            return False
        if self._is_named_tuple(value):
            self.classes.add(target.id)
            self.targets.add(target)
            return True
        if self._constant(value) or (in_class and _is_field(value)):
            self.constants.add(target.id)
            return True
        table = self._table(value)
        if table is None or target.id in self.constants:
            return False
        self.tables[target.id] = table
        return True

    def _table(self, node: ast.expr) -> Table | None:
        """Read a container of constants and of such containers; None if there is anything else in it."""
        if isinstance(node, ast.Call):
            return self._made_table(node)
        if isinstance(node, ast.Dict):
            if not all(key is not None and self._constant(key) for key in node.keys):
                return None
            return self._around(node.values, by_key=True)
        return self._around(node.elts, by_key=False) if isinstance(node, ast.List | ast.Set | ast.Tuple) else None

    def _around(self, parts: Iterable[ast.expr], *, by_key: bool) -> Table | None:
        inner = [None if self._constant(part) else (self._table(part) or False) for part in parts]
        if any(one is False for one in inner):
            return None
        return Table(1 + max((one.depth for one in inner if isinstance(one, Table)), default=0), by_key)

    def _made_table(self, node: ast.Call) -> Table | None:
        if isinstance(node.func, ast.Attribute):  # "one two three".split()
            text = node.func.value
            return (
                Table(1, False)
                if isinstance(text, ast.Constant) and node.func.attr in ("split", "splitlines")
                else None
            )
        if name_of(node.func) not in _TABLE_MAKERS:
            return None
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        constant = all(self._constant(part) for part in given)
        return Table(1, name_of(node.func) == "dict") if constant else None

    def _constant(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Constant):
            return True
        if isinstance(node, ast.Tuple):
            return all(self._constant(element) for element in node.elts)
        if isinstance(node, ast.UnaryOp):
            return self._constant(node.operand)
        if isinstance(node, ast.BinOp):
            return self._constant(node.left) and self._constant(node.right)
        if isinstance(node, ast.Name):
            self._used.add(node.id)
            return node.id in self.constants
        if isinstance(node, ast.Call):
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            flat = name_of(node.func) not in _RETURN_ARGUMENTS or len(given) == 1
            return self._makes_constants(node.func) and all(
                self._constant(part) or (flat and _flat(part)) for part in given
            )
        return False

    def _makes_constants(self, function: ast.expr) -> bool:
        if isinstance(function, ast.Name):
            return function.id in _CONSTANT_MAKERS
        if not isinstance(function, ast.Attribute):
            return False
        owner = function.value
        if isinstance(owner, ast.Constant):
            return isinstance(owner.value, str) and function.attr in _TEXT_METHODS
        return isinstance(owner, ast.Name) and (owner.id, function.attr) in _MODULE_MAKERS

    def _defaults(self, arguments: ast.arguments) -> bool:
        given = [*arguments.defaults, *(default for default in arguments.kw_defaults if default is not None)]
        return all(self._constant(default) for default in given)


def name_of(node: ast.expr) -> str:
    """Return the last part of a dotted name, "" for anything else."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _flat(node: ast.expr) -> bool:
    """A list, set or dictionary of constants, given to something that makes a constant of it."""
    if isinstance(node, ast.List | ast.Set):
        return all(isinstance(element, ast.Constant) for element in node.elts)
    return isinstance(node, ast.Dict) and all(isinstance(part, ast.Constant) for part in (*node.keys, *node.values))


def _is_field(node: ast.expr) -> bool:
    """``dataclasses.field(...)``: what its factory makes belongs to one instance."""
    if not isinstance(node, ast.Call) or name_of(node.func) != "field" or node.args:
        return False
    return all(isinstance(keyword.value, ast.Constant) or _is_factory(keyword) for keyword in node.keywords)


def _is_factory(keyword: ast.keyword) -> bool:
    value = keyword.value
    if keyword.arg != "default_factory":
        return False
    if isinstance(value, ast.Lambda):
        return not any(ast.iter_child_nodes(value.args))  # defaults would be the same for all
    return isinstance(value, ast.Name) and value.id in _FACTORIES


def _is_path(node: ast.expr) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _plain_annotation(node: ast.expr) -> bool:
    """Names, and names with others in brackets: what binds nothing when it is evaluated."""
    if isinstance(node, ast.Subscript):
        return _is_path(node.value) and _plain_annotation(node.slice)
    if isinstance(node, ast.Tuple | ast.List):
        return all(map(_plain_annotation, node.elts))
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.BitOr) and _plain_annotation(node.left) and _plain_annotation(node.right)
    return isinstance(node, ast.Constant) or _is_path(node)


def _never_runs(node: ast.stmt) -> bool:
    """``if __name__ == "__main__":``, which a program here is not."""
    if not isinstance(node, ast.If) or node.orelse or not isinstance(node.test, ast.Compare):
        return False
    test = node.test
    return (
        isinstance(test.left, ast.Name)
        and test.left.id == "__name__"
        and isinstance(test.ops[0], ast.Eq)
        and len(test.ops) == 1
        and isinstance(test.comparators[0], ast.Constant)
        and test.comparators[0].value == "__main__"
    )


def _plainly_decorated(node: ast.FunctionDef | ast.ClassDef) -> bool:
    return all(_plain_decorator(decorator, node.name) for decorator in node.decorator_list)


def _plain_decorator(node: ast.expr, decorated: str) -> bool:
    if isinstance(node, ast.Call):
        plain = not node.args and all(isinstance(keyword.value, ast.Constant) for keyword in node.keywords)
        return plain and name_of(node.func) == "dataclass" and _is_path(node.func)
    if isinstance(node, ast.Attribute) and node.attr in ("setter", "deleter"):
        return isinstance(node.value, ast.Name) and node.value.id == decorated
    return name_of(node) in _DECORATORS and _is_path(node)


def _called(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node
