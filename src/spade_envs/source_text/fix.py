"""Mending what is mechanical in a file that is meant to be a program."""

from __future__ import annotations

import ast
import builtins
import re
from dataclasses import dataclass

from spade_envs.sandbox.allowlist import PREBOUND, PREBOUND_MODULES
from spade_envs.source_text.extract import extract_program, parse
from spade_envs.source_text.mend import bound_names, mend_source

MAX_CHARS = 400_000
"""Longer texts are left as they are."""

_FENCE_LINE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Fixed:
    """A program and what was done to it, in words; nothing if ``mends`` is empty."""

    source: str
    mends: tuple[str, ...] = ()


def fix_source(text: str) -> Fixed:
    """Take the program out of its Markdown fence and prose, mend braces and escapes, add missing standard imports.

    A text that is valid Python and defines a class is never cut. What cannot be mended comes back as it was.
    """
    if len(text) > MAX_CHARS:
        return Fixed(text)
    tree = parse(text)
    if tree is not None and any(isinstance(node, ast.ClassDef) for node in tree.body):
        source, mends = mend_source(text)
    else:
        extracted = extract_program(text)
        if not extracted.source:
            return Fixed(text)
        source, mends = extracted.source, extracted.mends
        if len(_FENCE_LINE.findall(text)) > len(_FENCE_LINE.findall(source)):
            mends = ("Markdown fence removed", *mends)
    source, added = _add_imports(source)
    if added:
        mends = (*mends, f"imports added: {', '.join(added)}")
    return Fixed(source, mends) if mends else Fixed(text)


def _add_imports(source: str) -> tuple[str, list[str]]:
    """Import the standard names that are used and bound nowhere. The sandbox binds them, plain Python does not."""
    tree = parse(source)
    if tree is None:
        return source, []
    star = any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in ast.walk(tree))
    if star:
        return source, []
    bound = bound_names(tree) | set(dir(builtins))
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    missing = used - bound
    lines = [f"import {name}" for name in sorted(missing & set(PREBOUND_MODULES.split()))]
    added = sorted(missing & set(PREBOUND_MODULES.split()))
    for module, names in sorted(PREBOUND.items()):
        wanted = sorted(missing & set(names.split()))
        if wanted and not module.startswith("spade_envs"):
            lines.append(f"from {module} import {', '.join(wanted)}")
            added += wanted
    if not lines:
        return source, []
    rows = source.split("\n")
    place = _first_statement(tree)
    gap = [""] if place else ["", ""]
    return "\n".join([*rows[:place], *lines, *gap, *rows[place:]]), added


def _first_statement(tree: ast.Module) -> int:
    """How many lines stand before the place for imports: the docstring and imports from ``__future__``."""
    place = 0
    for position, node in enumerate(tree.body):
        docstring = position == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not (docstring or future):
            break
        place = node.end_lineno or place
    return place
