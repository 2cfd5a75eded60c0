"""Tools of an environment as forms, and a filled form as the action that the program reads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_MOST = 64  # tools, and parameters of one

Kind = str  # "text", "number", "integer", "boolean", "choice", "json"


@dataclass(frozen=True, slots=True)
class Field:
    """One parameter of a tool."""

    name: str
    kind: Kind
    required: bool = False
    description: str = ""
    choices: tuple[str, ...] = ()  # of "choice", each as JSON


@dataclass(frozen=True, slots=True)
class Form:
    """One tool."""

    name: str
    description: str
    fields: tuple[Field, ...]


class FormError(ValueError):
    """A filled form does not fit its tool; the message says which value was expected."""


def forms(schemas: Sequence[Mapping[str, Any]]) -> list[Form]:
    """Return a form for each of these OpenAI function schemas; parts that are malformed become text fields."""
    return [form for schema in schemas[:_MOST] if (form := _form(schema)) is not None]


def action(form: Form, values: Mapping[str, str]) -> str:
    """Return the tool call that a filled form says, in tags.

    Args:
        form: the tool.
        values: texts by the number of the parameter, "0", "1" and so on; empty optional ones are left out.

    Raises:
        FormError: if a required value is missing or a value is not of its type.
    """
    arguments = {}
    for place, field in enumerate(form.fields):
        raw = values.get(str(place), "")
        if raw == "" and (not field.required or field.kind != "text"):
            if field.required:
                raise FormError(f"{form.name} needs a value for {field.name} ({field.kind})")
            continue
        arguments[field.name] = _value(field, raw)
    call = json.dumps({"name": form.name, "arguments": arguments}, ensure_ascii=False)
    return f"<tool_call>\n{call}\n</tool_call>"


def _form(schema: Mapping[str, Any]) -> Form | None:
    function = schema.get("function", schema)
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        return None
    parameters = function.get("parameters")
    properties = parameters.get("properties") if isinstance(parameters, Mapping) else None
    required = parameters.get("required") if isinstance(parameters, Mapping) else None
    wanted = {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()
    fields = [
        _field(str(name), one if isinstance(one, Mapping) else {}, str(name) in wanted)
        for name, one in (list(properties.items())[:_MOST] if isinstance(properties, Mapping) else ())
    ]
    return Form(function["name"], str(function.get("description") or ""), tuple(fields))


def _field(name: str, schema: Mapping[str, Any], required: bool) -> Field:
    description = str(schema.get("description") or "")
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        texts = tuple(json.dumps(choice, default=str) for choice in choices[:_MOST])
        return Field(name, "choice", required, description, texts)
    kinds = {"string": "text", "number": "number", "integer": "integer", "boolean": "boolean"}
    declared = schema.get("type", "string")
    kind = kinds.get(declared, "json") if isinstance(declared, str) else "json"
    return Field(name, kind, required, description)


def _value(field: Field, raw: str) -> Any:
    if field.kind == "text":
        return raw
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise FormError(f"{field.name} must be {_EXPECTED[field.kind]}, got {raw[:80]!r}") from error
    fits = {
        "integer": isinstance(value, int) and not isinstance(value, bool),
        "number": isinstance(value, int | float) and not isinstance(value, bool),
        "boolean": isinstance(value, bool),
        "choice": raw in field.choices,
        "json": True,
    }
    if not fits[field.kind]:
        raise FormError(f"{field.name} must be {_EXPECTED[field.kind]}, got {raw[:80]!r}")
    return value


_EXPECTED = {
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "choice": "one of the choices",
    "json": 'JSON, such as [1, 2] or "text"',
}
