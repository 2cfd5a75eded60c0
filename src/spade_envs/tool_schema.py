"""OpenAI function schemas for the tools of an environment: normalised from what it lists, or read off its methods.

Runs beside generated code, in its worker: whatever an annotation turns out to be, a schema comes out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any

_JSON_TYPES = {
    "int": "integer", "float": "number", "bool": "boolean", "str": "string",
    "list": "array", "tuple": "array", "set": "array", "dict": "object",
    "List": "array", "Sequence": "array", "Dict": "object", "Mapping": "object",
}  # fmt: skip
_SCALARS = (str, int, float, bool, type(None))
_PARAMETER_LINE = re.compile(r"\s*(?::param\s+)?(?P<name>[A-Za-z_]\w*)\s*(?:\([^)]*\))?\s*:\s+(?P<text>\S.*)")
_MAX_ENUM, _MAX_TEXT = 64, 1_000


def listed_schema(name: str, spec: Any) -> dict[str, Any]:
    """Normalise one entry of a listing to ``{"type": "function", "function": {...}}``."""
    spec = spec if isinstance(spec, dict) else {"description": str(spec)}
    function = dict(spec["function"]) if isinstance(spec.get("function"), dict) else dict(spec)
    function.pop("type", None)
    function.setdefault("name", name)
    function.setdefault("description", "")
    function.setdefault("parameters", {"type": "object", "properties": {}})
    return {"type": "function", "function": function}


def method_schema(name: str, method: Any) -> dict[str, Any]:
    """Read the schema of a tool off its method: annotations give types, the docstring gives descriptions.

    ``int``, ``float``, ``bool``, ``str``, ``list[...]``, ``dict``, ``Literal[...]``, ``Optional`` and ``X | None`` are
    known, as objects or as text; anything else is left open. Parameters without a default are required. The first
    line of the docstring describes the tool, a line ``name: text`` in it the parameter of that name.
    """
    code = underlying_code(method)
    names = list(code.co_varnames[1 : code.co_argcount]) if code is not None else []
    keyword_only = list(code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount]) if code is not None else []
    defaults = _as_tuple(getattr(method, "__defaults__", None))
    given = dict(zip(names[len(names) - len(defaults) :], defaults)) | _as_dict(getattr(method, "__kwdefaults__", None))
    annotations = _as_dict(getattr(method, "__annotations__", None))
    documentation = getattr(method, "__doc__", None)
    lines = documentation.strip().split("\n") if isinstance(documentation, str) else [""]
    described = {found["name"]: found["text"].strip() for line in lines[1:] if (found := _PARAMETER_LINE.match(line))}
    properties = {}
    for parameter in [*names, *keyword_only]:
        schema = _json_schema(annotations.get(parameter))
        if parameter in described:
            schema["description"] = described[parameter]
        if type(given.get(parameter)) in _SCALARS and given.get(parameter) is not None:
            schema["default"] = given[parameter]
        properties[parameter] = schema
    required = [parameter for parameter in properties if parameter not in given]
    parameters = {"type": "object", "properties": properties, "required": required}
    return listed_schema(name, {"description": lines[0].strip(), "parameters": parameters})


def underlying_code(function: Any) -> Any:
    """Return the code object under bound methods and decorators, None if there is none."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return getattr(getattr(function, "__func__", function), "__code__", None)


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return value if type(value) is tuple else ()


def _as_dict(value: Any) -> dict[str, Any]:
    return value if type(value) is dict else {}


def _json_schema(note: Any) -> dict[str, Any]:
    """Read an annotation: a class, a written one, or what the typing module made of it (read by its text)."""
    if type(note) is type:
        kind = _JSON_TYPES.get(note.__name__, "")
        return {"type": kind} if kind else {}
    text = note if type(note) is str else repr(note) if type(note).__module__ in ("typing", "types") else ""
    try:
        return _read(ast.parse(text[:_MAX_TEXT], mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}


def _read(node: ast.expr) -> dict[str, Any]:
    if isinstance(node, ast.Constant) and type(node.value) is str:  # 'list["str"]'
        return _read(ast.parse(node.value, mode="eval").body)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _union([node.left, node.right])
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    if name:
        return {"type": _JSON_TYPES[name]} if name in _JSON_TYPES else {}
    if not isinstance(node, ast.Subscript):
        return {}
    inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    outer = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
    if outer == "Literal":
        return _enumeration(inner)
    if outer in ("Optional", "Union"):
        return _union(inner)
    schema: dict[str, Any] = {"type": _JSON_TYPES[outer]} if outer in _JSON_TYPES else {}
    items = _read(inner[0]) if schema.get("type") == "array" and inner else {}
    return {**schema, **({"items": items} if items else {})}


def _union(members: Sequence[ast.expr]) -> dict[str, Any]:
    """One type, or nothing where there are several: a client may do without, but not with a wrong one."""
    named = [member for member in members if not (isinstance(member, ast.Constant) and member.value is None)]
    return _read(named[0]) if len(named) == 1 else {}


def _enumeration(members: Sequence[ast.expr]) -> dict[str, Any]:
    values = [member.value for member in members if isinstance(member, ast.Constant)][:_MAX_ENUM]
    values = [value for value in values if type(value) in _SCALARS]
    kinds = {_JSON_TYPES.get(type(value).__name__, "") for value in values}
    only = kinds.pop() if len(kinds) == 1 else ""
    return {**({"type": only} if only else {}), "enum": values} if values else {}
