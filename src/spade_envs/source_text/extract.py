"""Finding the program in a model's reply.

A reply may reason first, hold several fenced blocks, lack its last fence, or be bare source. What had to be done to
get at the program is recorded, so that a pool's faults can be counted.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from spade_envs.source_text.mend import mend_source
from spade_envs.source_text.thoughts import without_thoughts

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*([\w+.#-]*)[^`\n]*\Z")
_PYTHON_TAGS = ("", "python", "python3", "py", "python-repl")
_CLASS = re.compile(r"^[ \t]*class[ \t]+\w+", re.MULTILINE)
_ENV_CLASS = re.compile(r"^[ \t]*class[ \t]+\w*Env\b", re.MULTILINE)
# A line in the first column that can begin or go on with a module; anything else there is prose.
_CODE_LINE = re.compile(
    r"(?:import[ ]|from[ ][\w.]+[ ]import\b|class[ ]\w+\s*[(:]|(?:async[ ])?def[ ]\w+\s*\(|@\w|[\"']{3}|\#"
    r"|if[ ].*:|else\s*:|elif[ ].*:|try\s*:|except\b.*:|finally\s*:|for[ ].*:|while[ ].*:|with[ ].*:"
    r"|[\w.\[\]\"', ]+?(?::[ ]?[\w.\[\], |\"']+)?\s*[-+*/|&]?=[^=]|[)\]}]|[\w.]+\()",
)
_MAX_CLOSERS = 8  # how many closing fences are tried for one block whose source holds fences itself


@dataclass(frozen=True, slots=True)
class Extracted:
    """A program found in a reply; ``source`` is empty if there is none. ``mends`` says what was repaired."""

    source: str
    mends: tuple[str, ...] = ()


def extract_program(text: str) -> Extracted:
    """Return the program in ``text``: the last complete fenced block that defines a class, else bare source.

    Thoughts (``<think>…</think>``) are not looked at. The result need not be valid Python.
    """
    answer = text.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
    answer = without_thoughts(answer)
    source, mends = _fenced(answer)
    if not source and not mends:
        source, mends = _bare(answer)
    if not source.strip():
        return Extracted("")
    source, more = mend_source(source)
    return Extracted(source.strip("\n") + "\n", (*mends, *more))


def _fenced(text: str) -> tuple[str, tuple[str, ...]]:
    """The last fenced block with an environment class, else with any class, else the last block."""
    blocks = list(_blocks(text))
    if not blocks:
        return "", ()
    for wanted in (_ENV_CLASS, _CLASS):
        for complete in (True, False):
            for source, closed in reversed(blocks):
                if closed is complete and wanted.search(source):
                    return source, () if closed else ("missing closing fence",)
    if _ENV_CLASS.search(_outside(text)):
        return "", ()  # the program stands outside of the fences
    source, closed = blocks[-1]
    return source, () if closed else ("missing closing fence",)


def _blocks(text: str) -> Iterator[tuple[str, bool]]:
    """Yield (source, whether it was closed) for the Python blocks of ``text``."""
    lines = text.split("\n")
    fences = [(number, match) for number, line in enumerate(lines) if (match := _FENCE.match(line))]
    position = 0
    for index, (number, opening) in enumerate(fences):
        if number < position:
            continue
        start, fence = number + 1, opening[1]
        # No more than are tried: a reply of nothing but fences would take quadratic time.
        later = (fences[place] for place in range(index + 1, len(fences)))
        closing = (place for place, match in later if not match[2] and match[1].startswith(fence))
        closers = list(islice(closing, _MAX_CLOSERS))
        python = opening[2].lower() in _PYTHON_TAGS
        if not closers:
            if python:
                yield _dedent(lines[start:]), False
            return
        end = _closer(lines, start, closers) if python else closers[0]
        if python:
            yield _dedent(lines[start:end]), True
        position = end + 1


def _closer(lines: list[str], start: int, closers: list[int]) -> int:
    """The line that closes a block: the first one that leaves valid Python, since a program may print fences."""
    if len(closers) > 1 and not _parses(_dedent(lines[start : closers[0]])):
        for end in closers[1:_MAX_CLOSERS]:
            if _parses(_dedent(lines[start:end])):
                return end
    return closers[0]


def _outside(text: str) -> str:
    return re.sub(r"^[ \t]*(`{3,}|~{3,})[^\n]*\n.*?(?:^[ \t]*\1[ \t]*$|\Z)", "", text, flags=re.DOTALL | re.MULTILINE)


def _bare(text: str) -> tuple[str, tuple[str, ...]]:
    """Source without fences, perhaps between sentences."""
    if not _CLASS.search(text):
        return "", ()
    if _parses(text):
        return text, ()
    lines = text.split("\n")
    starts = [number for number, line in enumerate(lines) if _CODE_LINE.match(line)]
    if not starts:
        return text, ()
    first, last, seen_class = starts[0], len(lines), False
    for number in range(first, len(lines)):
        line = lines[number]
        if seen_class and line[:1].strip() and not _CODE_LINE.match(line):
            last = number
            break
        seen_class = seen_class or bool(_CLASS.match(line))
    source = "\n".join(lines[first:last])
    if not _parses(source):
        # Rather the whole text than half a program: validation will name the line that is wrong.
        source = "\n".join(lines[first:]) if _parses("\n".join(lines[first:])) else source
    return source, ("text around the program dropped",) if source.strip() != text.strip() else ()


def _dedent(lines: list[str]) -> str:
    """Remove the indentation of a block inside a list item, judged by its first line alone."""
    first = next((line for line in lines if line.strip()), "")
    margin = first[: len(first) - len(first.lstrip())]
    if margin and all(line.startswith(margin) or not line.strip() for line in lines):
        lines = [line[len(margin) :] for line in lines]
    return "\n".join(lines)


def _parses(source: str) -> bool:
    return parse(source) is not None


def parse(source: str) -> ast.Module | None:
    """Return the syntax tree, or None if ``source`` is not valid Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "\d" in a generated literal is not our user's concern
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
