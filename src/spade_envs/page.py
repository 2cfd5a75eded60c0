"""An environment's page in Gymnasium's form, rendered from its record."""

from __future__ import annotations

import re
from textwrap import fill, indent

from spade_envs.record import EnvironmentRecord

_EXCERPT = 400  # characters of the grounding document
_DESCRIPTION = 4000


def render_page(record: EnvironmentRecord, observation_space: str, action_space: str) -> str:
    """Return the page of ``record`` as Markdown; it becomes the class's docstring.

    Args:
        record: the environment.
        observation_space: ``repr`` of the space.
        action_space: ``repr`` of the space.
    """
    sections = {
        "Description": _description(record),
        "Action Space": f"`{action_space}`: the agent's whole reply, handed to the program unchanged."
        + (" Functions are called by `<tool_call>{…}</tool_call>`." if record.kind == "tool_use" else ""),
        "Observation Space": f"`{observation_space}`: what the program says next.",
        "Starting State": "Drawn by the program from the seed of `reset`; without a seed one is drawn from the "
        "environment's own generator. The same seed gives the same start.",
        "Rewards": "A float, clipped to [-1, 1]. The return of an episode is by default the reward of its last step, "
        "and 0 unless that step terminated it." + _played(record),
        "Episode End": "Terminated by the program. Truncated "
        + (f"after {record.max_turns} turns, " if record.max_turns else "")
        + "at the program's own turn limit, "
        + 'or when the program fails; then the reward is 0 and `info["error"]` says why.',
        "Arguments": '`render_mode`: None or "ansi". `max_turns`: limit on turns, besides that of the program. '
        "`arguments`: keyword arguments of its constructor. "
        '`reset(options={"hint": True})` appends the hint to the first observation and puts it into '
        '`info["hint"]`.',
        "Version History": f"v0: SHA-256 `{record.id}`"
        + (f", written by {record.generator}" if record.generator else "")
        + ".",
    }
    return "\n\n".join(f"## {title}\n{text}" for title, text in sections.items()) + "\n"


def class_docstring(source: str, name: str) -> str:
    """Return the docstring of class ``name`` in ``source``, or "".

    By a linear search: sources are never parsed outside the sandbox, since parsing alone can exhaust a process.
    """
    pattern = rf"^class[ \t]+{re.escape(name)}\b[^\n]*:[ \t]*(?:#[^\n]*)?\n\s*[rR]?(\"\"\"|''')(.*?)\1"
    found = re.search(pattern, source, re.DOTALL | re.MULTILINE)
    if not found:
        return ""
    lines = [line.strip() for line in found.group(2)[:_DESCRIPTION].strip().splitlines()]
    return "\n".join(lines)


def _description(record: EnvironmentRecord) -> str:
    parts = [class_docstring(record.source, record.name)]
    kind = "A tool-use environment" if record.kind == "tool_use" else "A game"
    made = ", generated" if record.generator else ""
    parts.append(f"{kind}{made}{f' to exercise {record.skill}' if record.skill else ''}.")
    if record.document:
        excerpt = " ".join(record.document[:_EXCERPT].split())
        more = "…" if len(record.document) > _EXCERPT else ""
        parts.append("Grounded in:\n" + indent(fill(excerpt + more, 100), "> "))
    return "\n\n".join(part for part in parts if part)


def _played(record: EnvironmentRecord) -> str:
    facts = []
    if record.proven:
        facts.append("its own solution earns the maximal return")
    if record.statistics.win_rate is not None:
        facts.append(f"{record.statistics.plain_plays} plays were won at a rate of {record.statistics.win_rate:.2f}")
    return f" Known of it: {'; '.join(facts)}." if facts else ""
