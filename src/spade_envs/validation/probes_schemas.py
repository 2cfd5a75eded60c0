"""Probe of tool schemas: what they announce is what the methods take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spade_envs.sandbox.inspection import ToolInspection, ToolMethod
from spade_envs.validation.evidence import Evidence
from spade_envs.validation.finding import Finding, Severity

_JSON = {"int": "integer", "float": "number", "str": "string", "bool": "boolean", "list": "array", "dict": "object"}


def schema_probe(evidence: Evidence, inside: ToolInspection) -> list[Finding]:
    """Names and types of parameters in a schema are those of the method; every tool is announced and exists."""
    findings: list[Finding] = []
    announced: set[str] = set()
    for schema in evidence.survey[0].tools:
        function = schema.get("function", schema)
        name = function.get("name")
        if not isinstance(name, str) or not name:
            continue
        announced.add(name)
        method = inside.methods.get(name)
        if method is None:
            if inside.methods:
                reason = f"the schema announces tool {name!r}, but there is no method. Define tool_{name} on the class."
                findings.append(Finding("tools", Severity.REFUSE, reason, {"tool": name}))
            continue
        findings += _parameters(name, function.get("parameters"), method)
    for name in sorted(set(inside.methods) - announced):
        reason = f"the method tool_{name} has no schema, so no player knows of it. Add {name!r} to self._tools."
        findings.append(Finding("tools", Severity.WARN, reason, {"tool": name}))
    return findings


def _parameters(name: str, parameters: Any, method: ToolMethod) -> list[Finding]:
    parameters = parameters if isinstance(parameters, Mapping) else {}
    properties = parameters.get("properties")
    properties = properties if isinstance(properties, Mapping) else {}
    listed = parameters.get("required")
    required = {key for key in listed if isinstance(key, str)} if isinstance(listed, list) else None

    def finding(severity: Severity, parameter: str, reason: str) -> Finding:
        return Finding("tools", severity, reason, {"tool": name, "parameter": parameter})

    found = []
    for parameter in properties:
        if parameter not in method.parameters and not method.open:
            reason = (
                f"the schema of tool {name!r} has a parameter {parameter!r} that tool_{name} does not take (it takes "
                f"{', '.join(method.parameters) or 'none'}). Give both the same names."
            )
            found.append(finding(Severity.REFUSE, parameter, reason))
    for parameter in method.required:
        if parameter not in properties:
            reason = (
                f"tool_{name} needs {parameter!r}, which its schema does not name. Add it to the schema, or give it a "
                "default."
            )
            found.append(finding(Severity.REFUSE, parameter, reason))
        elif required is not None and parameter not in required:
            reason = (
                f'tool_{name} needs {parameter!r}, but the schema calls it optional. Add it to "required", or give it '
                "a default."
            )
            found.append(finding(Severity.WARN, parameter, reason))
    for parameter in sorted((required or set()) - set(properties)):
        if parameter not in method.required:
            reason = f'the schema of tool {name!r} requires {parameter!r} but does not describe it under "properties".'
            found.append(finding(Severity.WARN, parameter, reason))
    for parameter, note in method.annotations.items():
        schema = properties.get(parameter)
        kind = schema.get("type") if isinstance(schema, Mapping) else None
        wanted = _JSON.get(note.split("[")[0].strip().lower())
        if isinstance(kind, str) and wanted and kind != wanted and {kind, wanted} != {"integer", "number"}:
            reason = (
                f"parameter {parameter!r} of tool {name!r} is {kind} in the schema and {note} in the method. A player "
                "sends what the schema says: use one type."
            )
            found.append(finding(Severity.WARN, parameter, reason))
    return found
