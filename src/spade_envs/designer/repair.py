"""Sending a program that cannot be used back to its designer: the reasons, the lines in question, what to do."""

from __future__ import annotations

import ast
import re
from typing import Any

from spade_envs.designer.attempt import Attempt, DesignPrompt
from spade_envs.designer.prompts import PromptSet
from spade_envs.models.base import Message
from spade_envs.source_text.extract import parse
from spade_envs.source_text.thoughts import without_thoughts
from spade_envs.validation import Severity

MAX_SOURCE = 24_000
"""Characters of the program that go back; the end of a longer one is left out."""
MAX_REPLY = 2_000
"""Characters of a reply without a program that go back."""
MAX_FINDINGS = 6
MAX_REASON = 800
"""Characters of one reason."""
_AROUND, _MAX_LINES, _MAX_LINE = 2, 40, 160
_LINE = re.compile(r"\bline (\d+)\b")


def repairable(attempt: Attempt) -> bool:
    """Whether asking again can help: the program was refused, repeats another one, or the reply held none."""
    return attempt.status in ("refused", "no_code", "duplicate")


def repair_messages(prompts: PromptSet, prompt: DesignPrompt, attempt: Attempt) -> list[Message]:
    """The request, the reply and what was wrong with it, as a conversation of bounded length.

    Only the last reply is in it, however many there were before. It is shown as it was judged: the program alone,
    with mechanical repairs, so that line numbers are those of the reasons. A set may want the program left out: the
    reasons go to the end of the request then, since small models copy what they are shown.
    """
    content = prompts.repair_message(**_variables(attempt))
    if prompts.repair == "anew":
        *before, request = prompt.messages
        again: Message = {"role": request["role"], "content": f"{request['content']}\n\n{content.strip()}"}
        return [*before, again]
    if attempt.source:
        reply = f"```python\n{_cut(attempt.source, MAX_SOURCE)}\n```"
    else:
        reply = without_thoughts(attempt.raw).strip()[-MAX_REPLY:] or "(no answer)"
    return [*prompt.messages, {"role": "assistant", "content": reply}, {"role": "user", "content": content}]


def _variables(attempt: Attempt) -> dict[str, Any]:
    refusals = attempt.report.refusals[:MAX_FINDINGS] if attempt.report is not None else ()
    findings = [{"probe": finding.probe, "reason": _shorten(finding.reason)} for finding in refusals]
    findings = findings or [{"probe": attempt.cause, "reason": _shorten(attempt.reason)}]
    found = attempt.report.findings if attempt.report is not None else ()
    warned = [finding for finding in found if finding.severity is Severity.WARN]
    numbers = [int(number) for finding in findings for number in _LINE.findall(finding["reason"])]
    return {
        "status": attempt.status,
        "repeated": attempt.reason,
        "cut_off": attempt.finish == "length",
        "findings": findings,
        "warnings": [_shorten(finding.reason) for finding in warned[: MAX_FINDINGS - len(findings)]],
        "excerpts": excerpts(attempt.source, numbers),
        "unwritten": unwritten(attempt.source),
        "name": attempt.report.name if attempt.report else "",
        "source": attempt.source,
    }


def excerpts(source: str, numbers: list[int]) -> list[str]:
    """The lines of ``source`` around ``numbers``, each with its number, at most :data:`_MAX_LINES` in all."""
    lines = source.split("\n")
    wanted = sorted(
        {near for number in numbers for near in range(number - _AROUND, number + _AROUND + 1) if 0 < near <= len(lines)}
    )
    shown: list[str] = []
    for before, number in zip([number - 1 for number in wanted[:1]] + wanted, wanted, strict=False):
        if number > before + 1:
            shown.append("...")
        shown.append(f"{number}: {lines[number - 1][:_MAX_LINE].replace('```', '` ` `')}")
    return shown[:_MAX_LINES]


def unwritten(source: str) -> list[str]:
    """Functions whose body is ``pass``, ``...`` or ``raise NotImplementedError``, such as "step() (line 18)"."""
    tree = parse(source)
    if tree is None:
        return []
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name != "close" and all(map(_says_nothing, node.body)):
            found.append(f"{node.name}() (line {node.lineno})")
    return found[:MAX_FINDINGS]


def _says_nothing(node: ast.stmt) -> bool:
    if isinstance(node, ast.Raise):
        return "NotImplementedError" in ast.dump(node)
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def _shorten(reason: str) -> str:
    reason = " ".join(reason.split())
    return reason if len(reason) <= MAX_REASON else f"{reason[:MAX_REASON]}…"


def _cut(source: str, characters: int) -> str:
    source = source.rstrip("\n")
    return source if len(source) <= characters else source[:characters].rsplit("\n", 1)[0] + "\n# …"
