"""A dry run as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from spade_train.dryrun.report import DryRun

_SHOWN_CHARACTERS = 1_500  # of one message
_LEAST_GIB = 0.01


def lines(report: DryRun, *, everything: bool = False) -> Iterator[str]:
    """Yield the report line by line.

    Args:
        report: what :func:`spade_train.dryrun.dry_run` returned.
        everything: all settings, and prompts uncut.
    """
    yield "recipe    " + " ← ".join(report.recipe)
    yield from _mapping("all settings" if everything else "settings that differ from the defaults (--all: every one)",
                        report.settings if everything else report.changed)  # fmt: skip
    sizes = report.sizes
    yield ""
    yield (
        f"cycle     {sizes['programs']} programs, {sizes['environments']} environments, {sizes['plain_episodes']} "
        f"plain and {sizes['hinted_episodes']} hinted episodes on each of {sizes['ranks']} rank(s); "
        f"{sizes['cycles']} cycles"
    )
    yield (
        f"rows      {sizes['rows']} of {sizes['slots']} slots ({sizes['unused_slots']} unused), in "
        f"{sizes['micro_batches']} micro-batches"
    )
    if report.tokens:
        parts = ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in report.tokens.items() if count)
        yield f"tokens    at most: {parts}"
    yield f"memory    {report.memory_note}"
    yield from (
        f"          {row['gib']:8.2f} GiB  {row['part']} ({row['phase']})"
        for row in report.memory
        if row["gib"] >= 0.01
    )
    for prompt in report.prompts:
        yield ""
        yield f"first prompt: {prompt.role}" + ("" if prompt.tokens is None else f" ({prompt.tokens:,} tokens)")
        for message in prompt.messages:
            yield from (f"  {line}" for line in [f"[{message['role']}]", *_cut(str(message["content"]), everything)])
    yield ""
    for check in report.checks:
        detail = check.detail.removeprefix(f"{check.name} ")  # an error that names its subject too
        yield f"{'ok     ' if check.ok else 'missing'}  {check.name}: {detail}"
        if not check.ok and check.remedy:
            yield f"         → {check.remedy}"


def _mapping(title: str, values: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    yield f"{title}:"
    text = yaml.safe_dump(dict(values), sort_keys=False, allow_unicode=True, width=110)
    yield from (f"  {line}" for line in text.splitlines())


def _cut(text: str, everything: bool) -> list[str]:
    if everything or len(text) <= _SHOWN_CHARACTERS:
        return text.splitlines()
    half = _SHOWN_CHARACTERS // 2
    left_out = len(text) - 2 * half
    return [*text[:half].splitlines(), f"… {left_out:,} characters …", *text[-half:].splitlines()]
