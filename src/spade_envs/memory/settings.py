"""The settings that a run stores with its progress, and what a resume would change of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def changed_settings(state: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    """Say which of ``settings`` differ from those in the stored ``state`` of a run; "" if none do."""
    before = state.get("settings", settings)
    return "; ".join(
        f"{name} was {before.get(name)!r}, is {value!r}"
        for name, value in settings.items()
        if before.get(name) != value
    )
