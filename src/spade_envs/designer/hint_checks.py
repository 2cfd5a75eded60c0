"""What a hint must not hold: many sentences, names from the code, values that calls of a tool need."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spade_envs.sandbox import Operation, ProgramError
from spade_envs.validation.occurrence import bare

if TYPE_CHECKING:
    from spade_envs.record import EnvironmentRecord
    from spade_envs.sandbox import Sandbox

MAX_HINT = 800
"""Characters of a hint; one to three sentences are far below."""
MAX_SENTENCES = 3
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|approx)\.", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[\\A-Z0-9])")
_CODE_LIKE = re.compile(
    r"`(\w+)(?:\(\))?`"
    r"|\bself\.(\w+)"
    r"|\b(\w+)\(\)"
    r"|(?<![\w\\])(_*[A-Za-z]\w*_\w+|_+[A-Za-z]\w*)"
    r"|(?<![\w\\])([a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*)"
)
_WORD = re.compile(r"[A-Za-z_]\w*")
_CALL = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a player sees of a program on some seeds, and the values that win on them."""

    shown: str = ""  # first observations and tool schemas
    schemas: str = ""
    values: tuple[str, ...] = ()  # of the arguments in tool calls, and of answers in the end


def look(record: EnvironmentRecord, sandbox: Sandbox, seeds: Sequence[int]) -> Seen:
    """Reset the program on ``seeds`` and ask for its tools and solutions; nothing where it fails."""
    try:
        program = sandbox.open(record.source, allow=record.allow)
    except ProgramError:
        return Seen()
    names = ["tools"] * program.info.has_tools + ["solution"] * program.info.has_solution
    try:
        operations = []
        for seed in seeds:
            session = program.new_session_number()
            operations += [Operation("make", session, {}), Operation("reset", session, seed)]
            operations += [Operation(name, session) for name in names]
        outcomes = program.run(operations)
    finally:
        program.close()
    observations: list[str] = []
    schemas, values = "", list[str]()
    for operation, outcome in zip(operations, outcomes, strict=True):
        if outcome.error is not None or outcome.value is None:
            continue
        if operation.name == "reset":
            observations.append(outcome.value.observation)
        elif operation.name == "tools":
            schemas = json.dumps(outcome.value, default=str)
        elif operation.name == "solution":
            values += _values(outcome.value)
    return Seen("\n".join([*observations, schemas]), schemas, tuple(dict.fromkeys(values)))


def _values(actions: Sequence[str]) -> Iterator[str]:
    for action in actions:
        for call in _CALL.findall(action):
            try:
                yield from _leaves(json.loads(call).get("arguments", {}))
            except (ValueError, AttributeError, RecursionError):
                continue
    if actions and "<answer>" in actions[-1] and (answer := bare(actions[-1])).lower() != "done":
        yield answer


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _leaves(part)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)


def length_complaint(hint: str) -> str:
    """Say that a hint is empty or long; "" if it is one to three sentences."""
    if not hint:
        return "it was empty"
    if len(hint) > MAX_HINT:
        return f"it had {len(hint)} characters; one to three sentences are asked for"
    sentences = len(_SENTENCE_END.split(_ABBREVIATION.sub("", hint)))
    return f"it had {sentences} sentences; one to three are asked for" if sentences > MAX_SENTENCES else ""


def identifier_complaint(hint: str, source: str, shown: str) -> str:
    """Say that a hint names something of the code that players do not see, such as ``_queue`` or ``check_answer()``.

    Only what looks like code counts, so that a word like "target" may be used whatever variables are called.
    """
    names = {name for match in _CODE_LIKE.finditer(hint) for name in match.groups() if name}
    hidden = sorted(name for name in names & set(_WORD.findall(source)) if not _contains(shown, name))
    return f"it names parts of the program ({', '.join(hidden[:3])}), which the player does not see" if hidden else ""


def value_complaint(hint: str, seen: Seen) -> str:
    """Say that a hint holds a value of an argument; single characters and words of the schemas do not count."""
    for value in seen.values:
        if len(value.strip()) > 1 and _contains(hint, value) and not _contains(seen.schemas, value):
            return f"it holds a concrete value ({value[:40]!r}); say how to find such values, not what they are"
    return ""


def _contains(text: str, words: str) -> bool:
    """Whether ``words`` stand in ``text``, not inside of longer words or numbers; cases are the same."""
    pattern = rf"(?<![\w.]){re.escape(words.strip())}(?!\w|\.\d)"
    return re.search(pattern, text, re.IGNORECASE) is not None
