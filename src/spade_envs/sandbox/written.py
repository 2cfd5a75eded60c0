"""Which parts of the hidden state the code of tools can reach, read from the source inside the worker."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

_READS = frozenset(
    ["len", "str", "repr", "sorted", "set", "sum", "any", "all", "bool", "deepcopy", "dumps", "isinstance"]
)
_BY_KEY = frozenset(["get", "setdefault", "pop"])
_CHANGES = frozenset(["update", "append", "insert", "extend", "pop", "popitem", "remove", "clear", "discard", "add"])


@dataclass(frozen=True, slots=True)
class Writable:
    """What tools can write: keys among ``words``, attributes among ``attributes``, or ``anything``.

    ``keys``: those under which something is stored; ``computed``: somewhere, not in the state itself, a key is
    computed, or something is taken out.
    """

    words: frozenset[str]
    attributes: frozenset[str]
    anything: bool
    computed: bool = False
    keys: frozenset[str] = frozenset()

    def leaves_alone(self, names: Iterable[str]) -> bool:
        """Whether no tool sets any of these attributes, and none of them is a method that could compute something."""
        return not self.attributes & set(names)


@lru_cache(1)
def writable(source: str) -> Writable:
    """Read ``tool_*`` and ``step`` and every function that they name, directly or through others.

    A key of the state can change only if its text stands in that code, unless the code reaches the state by a
    computed key or hands it to a function.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Writable(frozenset(), frozenset(), True, True)
    functions: dict[str, list[ast.AST]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            functions.setdefault(node.name, []).append(node)
    todo = [name for name in functions if name.startswith("tool_") or name == "step"]
    reached: set[str] = set()
    words: set[str] = set()
    stored: set[str] = set()
    keys: set[str] = set()
    anything = computed = False
    while todo:
        name = todo.pop()
        if name in reached:
            continue
        reached.add(name)
        for function in functions[name]:
            aliases = _aliases(function)
            parents = {child: parent for parent in ast.walk(function) for child in ast.iter_child_nodes(parent)}
            for node in ast.walk(function):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    words.add(node.value)
                elif isinstance(node, ast.keyword) and node.arg:
                    words.add(node.arg)
                elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in functions:
                    todo.append(node.id)
                elif isinstance(node, ast.Attribute):
                    if node.attr in functions:
                        todo.append(node.attr)
                    if isinstance(node.ctx, ast.Store | ast.Del):
                        stored.add(node.attr)
                    if node.attr in ("setattr", "__setattr__"):
                        anything = True
                elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
                    if isinstance(node.slice, ast.Constant) and isinstance(node.ctx, ast.Store):
                        keys.add(str(node.slice.value))
                    else:
                        computed = True
                if isinstance(node, ast.Attribute) and node.attr in _CHANGES:
                    computed = True  # a container may come from outside, with whatever keys
                if isinstance(node, ast.Name) and node.id in ("setattr", "getattr", "vars"):
                    anything = True  # tools reached by a computed name, state set by one
                if _is_state(node, aliases) and not _by_known_key(node, parents):
                    anything = True
    return Writable(frozenset(words), frozenset(stored), anything, computed, frozenset(keys))


def _aliases(function: ast.AST) -> set[str]:
    found = {"state"} if any(isinstance(n, ast.arg) and n.arg == "state" for n in ast.walk(function)) else set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute) and node.value.attr == "_state":
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


def _is_state(node: ast.AST, aliases: set[str]) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr == "_state") or (
        isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in aliases
    )


def _by_known_key(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    parent = parents.get(node)
    if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
        return False
    if isinstance(parent, ast.Subscript) and parent.value is node:
        return isinstance(parent.slice, ast.Constant)
    if isinstance(parent, ast.Attribute):
        call = parents.get(parent)
        known = isinstance(call, ast.Call) and bool(call.args) and isinstance(call.args[0], ast.Constant)
        return parent.attr in _BY_KEY and known
    if isinstance(parent, ast.Assign):
        return all(isinstance(target, ast.Name) for target in parent.targets)
    if isinstance(parent, ast.Compare):
        return True
    if isinstance(parent, ast.Call) and node in parent.args:
        called = parent.func
        name = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
        return name in _READS
    return False
