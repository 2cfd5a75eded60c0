"""Tool descriptions that list the choices are no leak; those that name the right one are."""

from __future__ import annotations

from pathlib import Path

import pytest

from spade_envs.sandbox import Sandbox
from spade_envs.validation import Severity, validate

PAGE = Path(__file__).parents[2] / "docs/tools.md"
SOLUTION = """
    def solution(self):
        call = '<tool_call>{"name": "order", "arguments": {"item": "%s", "number": 20}}</tool_call>' % self._scarce
        return [call, f"<answer>{self._scarce}</answer>"]
"""
TOLD = """
    def get_tools(self):
        tools = super().get_tools()
        for tool in tools:
            tool["function"]["description"] += f" Today {self._scarce}."
        return tools
"""


def _stockroom(*more: str) -> str:
    source = PAGE.read_text(encoding="utf-8").split("SOURCE = '''")[1].split("'''\n```")[0]
    return source.rstrip() + "\n" + "".join(more)


def test_a_description_that_lists_all_choices_is_no_leak(sandbox: Sandbox) -> None:
    report = validate(_stockroom(SOLUTION), sandbox=sandbox)
    assert report.admitted, report.findings
    assert report.proven


@pytest.mark.parametrize("listed", ["bolts, nuts or screws", "bolts and others"])
def test_a_description_that_names_the_right_one_leaks(sandbox: Sandbox, listed: str) -> None:
    source = _stockroom(SOLUTION, TOLD).replace("bolts, nuts or screws.", f"{listed}.")
    report = validate(source, sandbox=sandbox)
    assert not report.admitted
    assert [f.probe for f in report.findings if f.severity is Severity.REFUSE] == ["leak"]
