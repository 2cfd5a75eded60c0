"""What to write instead: advice for exceptions of generated programs, and the line that they point at."""

from __future__ import annotations

import re

from spade_envs.sandbox.types import ProgramError, ProgramRaised, ProtocolViolation
from spade_envs.validation.shown import shorten

_LONGEST_LINE = 100  # characters of a quoted line of source
_NO_ATTRIBUTE = re.compile(r"'(\w+)' object has no attribute '(\w+)'")
_NO_NAME = re.compile(r"name '(\w+)' is not defined")
_UNASSIGNED = re.compile(r"variable '?(\w+)'? .*(?:before assignment|not associated with a value)")
_NOT_CALLED_SO = re.compile(r"(\w+(?:\.\w+)*)\(\) (?:missing|takes|got an unexpected)")

PARSE = (
    "step() must accept any text: parse with a regular expression or inside try/except (ValueError, OverflowError, "
    "KeyError, IndexError), and answer an unusable action with an observation, reward 0.0 and the turn counted."
)
SHAPE = "It returns (observation: str, reward: float, terminated: bool, truncated: bool, info: dict)."


def with_line(error: ProgramError, source: str) -> str:
    """The error's words, and the text of the line of ``source`` that they name, if there is one."""
    if not isinstance(error, ProgramRaised) or not error.line:
        return str(error)
    return f"{error}{line_quoted(source, error.line)}"


def line_quoted(source: str, number: int) -> str:
    """`` `the line` `` with a blank before it, "" if there is no such line."""
    lines = source.split("\n", number)
    text = lines[number - 1].strip() if 0 < number <= len(lines) else ""
    return f" `{shorten(text, _LONGEST_LINE)}`" if text else ""


def advice(error: ProgramError, otherwise: str, class_name: str = "") -> str:
    """Say what to change so that ``error`` does not come again; ``otherwise`` where the exception says too little.

    Args:
        error: what the program did.
        otherwise: advice for the call that failed.
        class_name: the environment's class, to tell its own attributes from those of other objects.
    """
    if isinstance(error, ProtocolViolation) or not isinstance(error, ProgramRaised):
        return otherwise
    message = error.message
    if match := _NO_ATTRIBUTE.search(message):
        kind, name = match.groups()
        if kind == class_name:
            return f"Assign self.{name} in __init__ or reset() before this line reads it, or define it as a method."
        if kind == "NoneType":
            return f"The object before .{name} is None here: give it a value in reset(), or test for None first."
        return f"A {kind} has no {name}: use a method that it has, or convert it first."
    if "NoneType" in message:
        return "A value in this line is None: give it one in reset() before it is used, or test for None first."
    if match := _NO_NAME.search(message):
        return f"Import or define {match[1]} before this line uses it; attributes need self. before their name."
    if match := _UNASSIGNED.search(message):
        return f"Give {match[1]} a value on every path before this line reads it."
    if match := _NOT_CALLED_SO.search(message):
        return f"Call {match[1]}() with the parameters of its definition, or change the definition."
    if error.exception == "ZeroDivisionError":
        return "Draw numbers that cannot make the divisor 0, or test it before dividing."
    if error.exception == "RecursionError":
        return "Bound the recursion, or write it as a loop."
    return otherwise
