"""Advice for exceptions of generated programs."""

from __future__ import annotations

import pytest

from spade_envs.sandbox.types import ProgramError, ProgramRaised, ProgramTimeout, ProtocolViolation
from spade_envs.validation.advice import advice, line_quoted, with_line


@pytest.mark.parametrize(
    ("exception", "message", "words"),
    [
        ("AttributeError", "'GameEnv' object has no attribute 'goal'", "Assign self.goal"),
        ("AttributeError", "'NoneType' object has no attribute 'upper'", "before .upper is None"),
        ("AttributeError", "'list' object has no attribute 'add'", "A list has no add"),
        ("TypeError", "'NoneType' object is not iterable", "is None"),
        ("NameError", "name 'turn' is not defined", "Import or define turn"),
        ("UnboundLocalError", "cannot access local variable 'x' where it is not associated with a value", "Give x a"),
        ("UnboundLocalError", "local variable 'x' referenced before assignment", "Give x a"),
        ("TypeError", "GameEnv.check() missing 1 required positional argument: 'a'", "Call GameEnv.check()"),
        ("ZeroDivisionError", "division by zero", "divisor 0"),
        ("RecursionError", "maximum recursion depth exceeded", "loop"),
        ("ValueError", "invalid literal for int()", "OTHERWISE"),
    ],
)
def test_exceptions(exception: str, message: str, words: str) -> None:
    assert words in advice(ProgramRaised(exception, message, 2), "OTHERWISE", "GameEnv")


@pytest.mark.parametrize("error", [ProtocolViolation("got None"), ProgramTimeout("1 s"), ProgramError("x")])
def test_other_errors_keep_the_advice_of_the_call(error: ProgramError) -> None:
    assert advice(error, "OTHERWISE") == "OTHERWISE"
    assert with_line(error, "a\nb") == str(error)


def test_the_line_is_quoted_if_there_is_one() -> None:
    assert with_line(ProgramRaised("KeyError", "'a'", 2), "x\n    y = d['a']\nz").endswith("(line 2) `y = d['a']`")
    assert line_quoted("a\n\nb", 2) == line_quoted("a", 7) == line_quoted("a", 0) == ""
    assert "… (" in line_quoted("x" * 300, 1)
