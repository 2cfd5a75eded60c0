"""Texts that others wrote, on a page: bounded, with control characters to be seen. Escaping is the template's."""

from __future__ import annotations

import datetime
import json
import math
from typing import Any

from spade_envs.terminal import visible

LONGEST = 20_000
"""Characters of one text that a page shows."""


def shown(text: object, limit: int = LONGEST) -> str:
    """Return ``text`` for a page: at most ``limit`` characters, control characters and lone surrogates visible."""
    whole = text if isinstance(text, str) else str(text)
    if len(whole) <= limit:
        return visible(whole)
    return f"{visible(whole[:limit])}\n… ({len(whole) - limit:,} more characters)"


def as_json(value: Any, limit: int = 4_000) -> str:
    """Return ``value`` as indented JSON for a page, whatever it is."""
    try:
        text = json.dumps(value, ensure_ascii=False, indent=1, default=str)
    except (TypeError, ValueError, RecursionError):
        text = "(cannot be written as JSON)"
    return shown(text, limit)


def number(value: Any, digits: int = 2, sign: bool = False) -> str:
    """Return a figure for people, "–" for none."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        return "–"
    text = f"{value:{'+' if sign else ''}.{digits}f}" if abs(value) < 1e5 else f"{value:.3g}"
    return text.replace("-", "−")


def interval(bounds: tuple[float, float], digits: int = 2) -> str:
    """Return the two ends of an interval for people."""
    return f"{number(bounds[0], digits)} to {number(bounds[1], digits)}"


def date(seconds: Any) -> str:
    """Return a Unix time as day and minute (UTC), "–" where there is none."""
    try:
        if not seconds:
            return "–"
        return datetime.datetime.fromtimestamp(float(seconds), datetime.UTC).strftime("%Y-%m-%d %H:%M")
    except (TypeError, ValueError, OverflowError, OSError):
        return "–"
