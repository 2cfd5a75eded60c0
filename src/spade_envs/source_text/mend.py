"""Repairs of faults that models make with braces, applied only where the program could not work as it stands.

Each repair needs proof that the text is wrong: it does not parse, it builds a set of dictionaries (which always
raises), it formats a name that is bound nowhere or an object's key (``f'{"name": 1}'``, which always raises), or it
holds the control character that ``"\\b"`` is.
"""

from __future__ import annotations

import ast
import builtins
import re
import warnings
from collections.abc import Iterator

_MAX_REPAIRS = 20
_DISPLAY = (ast.Dict, ast.Set, ast.DictComp, ast.SetComp)
_BOXED_FIELD = re.compile(r"(boxed)\{([^{}]*)\}(?!\})")
_FORMATTED = re.compile(r"(?i)\b(?:f|rf|fr)[\"']")
_BACKSPACE = re.compile(r"(?<!\\)(?:\\\\)*\\boxed")
_LONE_CLOSE = re.compile(r"(?<!\})\}(?!\})")
_OBJECT = re.compile(r"(?<!\{)\{\s*([\"'])[^\"'{}\n]*\1\s*:[ ]")
"""The beginning of a JSON object. As a replacement field its format begins with a blank, which texts do not have."""
_PROVIDED = {"TextEnv", "ToolEnv", "ToolUseBaseEnv", "TerminalBaseEnv", "__name__", "__file__", "__doc__"}


def mend_source(source: str) -> tuple[str, tuple[str, ...]]:
    """Return the repaired source and what was repaired, in words; the source as it was if nothing was."""
    mends: list[str] = []
    tree, source = _mend_syntax(source, mends)
    if tree is None:
        return source, tuple(mends)
    for repair, possible in ((_undouble, "{{" in source), (_escape_boxed, _BACKSPACE.search(source)),
                             (_double_objects, _OBJECT.search(source)),
                             (_double_fields, _FORMATTED.search(source))):  # fmt: skip
        if not possible:  # a glance at the text saves walking the tree of most programs
            continue
        changed, what = repair(source, tree)
        if not what:
            continue
        new_tree, _ = _parse(changed)
        if new_tree is not None:
            source, tree = changed, new_tree
            mends.append(what)
    return source, tuple(mends)


def _parse(source: str) -> tuple[ast.Module | None, SyntaxError | None]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source), None
    except SyntaxError as error:
        return None, error
    except (ValueError, RecursionError, MemoryError):
        return None, None


def _mend_syntax(source: str, mends: list[str]) -> tuple[ast.Module | None, str]:
    r"""Double the braces of ``\boxed{your answer}`` and of a lone ``}`` in an f-string that does not parse."""
    tree, error = _parse(source)
    repaired, count = source, 0
    while error is not None and error.lineno and count < _MAX_REPAIRS:
        lines = repaired.split("\n")
        changed = False
        # The reported line is that of the string's end or start, by version of Python.
        for number in range(error.lineno - 1, max(-1, error.lineno - 4), -1):
            line = lines[number] if number < len(lines) else ""
            mended = _BOXED_FIELD.sub(r"\1{{\2}}", line)
            if mended == line and "single '}'" in str(error.msg):
                mended = _LONE_CLOSE.sub("}}", line, count=1)
            if mended != line:
                lines[number], changed = mended, True
                break
        if not changed:
            return None, source
        repaired, count = "\n".join(lines), count + 1
        tree, error = _parse(repaired)
    if tree is None:
        return None, source
    if count:
        mends.append(f"single braces doubled in {count} f-string line{'s' if count > 1 else ''}")
    return tree, repaired


def _undouble(source: str, tree: ast.Module) -> tuple[str, str]:
    """``{{}}`` in code is a set of a dictionary: as a whole program written for a template, or here and there."""
    doubled = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Set) and len(node.elts) == 1 and isinstance(node.elts[0], _DISPLAY)
    ]
    if not doubled:
        return source, ""
    if not re.search(r"[{}]", source.replace("{{", "").replace("}}", "")):
        halved = source.replace("{{", "{").replace("}}", "}")
        if _parse(halved)[0] is not None:
            return halved, "doubled braces undone throughout"
    text = source.encode()
    offsets = _line_offsets(text)
    end = len(text) + 1
    for node in sorted(doubled, key=lambda node: (node.end_lineno, node.end_col_offset), reverse=True):
        outer = _span(node, offsets)
        if outer[1] <= end:  # not inside one that was mended just now
            end = outer[0]
            text = text[: outer[0]] + text[slice(*_span(node.elts[0], offsets))] + text[outer[1] :]
    return text.decode(), f"doubled braces undone in {len(doubled)} place{'s' if len(doubled) > 1 else ''}"


def _escape_boxed(source: str, tree: ast.Module) -> tuple[str, str]:
    r"""``"\boxed"`` without a second backslash begins with a backspace."""
    text = source.encode()
    offsets = _line_offsets(text)
    spans = {
        _span(node, offsets)
        for node in _strings(tree)
        if any("\x08oxed" in part.value for part in ast.walk(node)
               if isinstance(part, ast.Constant) and isinstance(part.value, str))
    }  # fmt: skip
    return _edit(text, spans, rb"(?<!\\)((?:\\\\)*)\\boxed", rb"\1\\\\boxed"), (
        "backslash of \\boxed escaped" if spans else ""
    )


def _double_fields(source: str, tree: ast.Module) -> tuple[str, str]:
    """``f"{name}"`` with a name that is bound nowhere, or ``...``, was meant as literal text."""
    bound = bound_names(tree)
    text = source.encode()
    offsets = _line_offsets(text)
    changed = source
    spans: dict[tuple[int, int], set[str]] = {}
    for node in _strings(tree):
        if not isinstance(node, ast.JoinedStr):
            continue
        for part in ast.walk(node):
            if isinstance(part, ast.FormattedValue):
                if isinstance(part.value, ast.Name) and part.value.id not in bound:
                    spans.setdefault(_span(node, offsets), set()).add(part.value.id)
                elif isinstance(part.value, ast.Constant) and part.value.value is ...:
                    spans.setdefault(_span(node, offsets), set()).add("...")
    for span in sorted(spans, reverse=True):
        names = b"|".join(re.escape(name.encode()) for name in sorted(spans[span]))
        changed = _edit(text, {span}, rb"(?<!\{)\{(" + names + rb")\}(?!\})", rb"{{\1}}")
        text = changed.encode()
    return changed, "single braces of unbound names doubled" if spans else ""


def _double_objects(source: str, tree: ast.Module) -> tuple[str, str]:
    """``f'{"name": {x}}'`` was meant as a JSON object: braces that a key follows are doubled, others are fields."""
    text = source.encode()
    offsets = _line_offsets(text)
    spans = {_span(node, offsets) for node in _strings(tree) if isinstance(node, ast.JoinedStr) and _formats_key(node)}
    for start, end in sorted(spans, reverse=True):
        text = text[:start] + _objects_doubled(text[start:end].decode()).encode() + text[end:]
    return text.decode(), "single braces of JSON objects doubled" if spans else ""


def _formats_key(node: ast.JoinedStr) -> bool:
    for part in ast.walk(node):
        if isinstance(part, ast.FormattedValue) and isinstance(part.format_spec, ast.JoinedStr):
            first = part.format_spec.values[0] if part.format_spec.values else None
            key = isinstance(part.value, ast.Constant) and isinstance(part.value.value, str)
            if key and isinstance(first, ast.Constant) and str(first.value).startswith(" "):
                return True
    return False


def _objects_doubled(text: str) -> str:
    """Double the braces of objects in the text of an f-string; doubled ones and other fields stay."""
    objects = {match.start() for match in _OBJECT.finditer(text)}
    doubled: list[int] = []
    open_: list[int] = []
    place = 0
    while place < len(text):
        if place not in objects and text[place : place + 2] == "{{":
            place += 2
            continue
        if text[place] == "{":
            open_.append(place)
        elif text[place] == "}" and open_:
            start = open_.pop()
            if start in objects:
                doubled += [start, place]
        place += 1
    for place in sorted(doubled, reverse=True):
        text = text[:place] + text[place] + text[place:]
    return text


def _strings(tree: ast.Module) -> Iterator[ast.expr]:
    """String literals and f-strings, the outermost only."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            yield node
        else:
            waiting.extend(ast.iter_child_nodes(node))


def bound_names(tree: ast.Module) -> set[str]:
    """Return every name that any scope of the program binds, and the built-in ones: generous, so repairs are rare."""
    names = set(dir(builtins)) | _PROVIDED
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            names.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest:
            names.add(node.rest)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            names.update(node.names)
    return names


def _line_offsets(text: bytes) -> list[int]:
    offsets = [0]
    for line in text.split(b"\n"):
        offsets.append(offsets[-1] + len(line) + 1)
    return offsets


def _span(node: ast.expr, offsets: list[int]) -> tuple[int, int]:
    """Byte positions of a node's text."""
    assert node.end_lineno is not None  # set by the parser, like the next
    assert node.end_col_offset is not None
    return offsets[node.lineno - 1] + node.col_offset, offsets[node.end_lineno - 1] + node.end_col_offset


def _edit(text: bytes, spans: set[tuple[int, int]], pattern: bytes, replacement: bytes) -> str:
    for start, end in sorted(spans, reverse=True):
        text = text[:start] + re.sub(pattern, replacement, text[start:end]) + text[end:]
    return text.decode()
