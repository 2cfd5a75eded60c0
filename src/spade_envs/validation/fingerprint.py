"""Short names of statements, answers and code, by which programs of a pool are compared without keeping them."""

from __future__ import annotations

import builtins
import hashlib
import keyword
import re
import unicodedata
from collections.abc import Iterable, Sequence

from spade_envs.validation.occurrence import bare_solution

MAX_SEEDS = 16
"""Seeds whose fingerprints a report keeps."""

_BLANKS = re.compile(r"\s+")
_MARKUP = re.compile(r"\*\*|__|[`\"'“”‘’„«»]|(?m:^\s*#+\s)")
_ENDS = re.compile(r"[.,;:!?]+(?=\s|\Z)")
_NAME = re.compile(r"(\bself\s*\.\s*|\.\s*|\b)([A-Za-z_]\w*)")
_KEPT = frozenset((*keyword.kwlist, *dir(builtins), "self", "reset", "step", "solution", "hint"))
_NUMBER = re.compile(r"([+-]?)0*(\d+)(?:\.(\d*?)0*)?\Z")
# Comments, and literals of either kind of quote with their prefixes: what a statement's words are made of.
_TEXTS = re.compile(
    r"#[^\n]*"
    r"|[rRbBuUfF]{0,2}(?:\"\"\"(?:[^\"\\]|\\.|\"(?!\"\"))*+\"\"\"|'''(?:[^'\\]|\\.|'(?!''))*+''')"
    r"|[rRbBuUfF]{0,2}(?:\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+')",
    re.DOTALL,
)


def normalise_text(text: str) -> str:
    """Return ``text`` without differences of case, white space, markup, quotes and the punctuation of sentences.

    Signs between numbers stay: they are data.
    """
    plain = _MARKUP.sub("", unicodedata.normalize("NFKC", text).casefold())
    return _BLANKS.sub(" ", _ENDS.sub(" ", plain)).strip()


def normalise_answer(solution: Sequence[str]) -> str:
    """Return a solution as one text without wrappers; numbers in one form (``+07.0`` is ``7``)."""
    text = normalise_text(bare_solution(solution))
    if match := _NUMBER.match(text):
        sign, whole, decimals = match.groups()
        sign = "-" if sign == "-" and (whole != "0" or decimals) else ""
        return f"{sign}{whole}" + (f".{decimals}" if decimals else "")
    return text


def seed_fingerprints(seeds: Iterable[tuple[int, str, Sequence[str] | None]]) -> list[list[int | str]]:
    """Return ``[seed, statement, answer]`` for seeds with a solution, given (seed, first observation, solution)."""
    found: list[list[int | str]] = []
    for seed, observation, solution in seeds:
        if solution and len(found) < MAX_SEEDS:
            found.append([seed, _short(normalise_text(observation)), _short(normalise_answer(solution))])
    return found


def code_fingerprint(source: str) -> str:
    """Return the fingerprint of ``source`` without comments, string literals, white space and the names it chose.

    Names of its own count by the order in which they appear; those of builtins and of methods of other objects stay.
    Two codes may come out alike by chance: whoever compares them has to run both. The source is hostile, so it is not
    parsed; a literal inside an f-string's field may end the outer one early, in the same way in equal programs.
    """
    names: dict[str, str] = {}

    def rename(found: re.Match[str]) -> str:
        dotted, name = found[1], found[2]
        if name in _KEPT or (dotted and not dotted.startswith("self")):
            return found[0]
        return f"{dotted}v{names.setdefault(name, str(len(names)))}"

    code = _TEXTS.sub(lambda found: "" if found[0][0] == "#" else "''", source)
    return _short(_BLANKS.sub("", _NAME.sub(rename, code)))


def _short(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
