"""What the settings of all topics share."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any


class ConfigError(ValueError):
    """A setting is wrong, or contradicts another one."""


def setting(default: Any, text: str) -> Any:
    """Return a dataclass field with a help text."""
    return field(default=default, metadata={"help": text})


def launched_ranks() -> int:
    """Return the number of processes by the launcher's variable: the trainer's own count is not known yet."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def one_of(settings: object, choices: Mapping[str, Iterable[Any]]) -> None:
    """Check that each named setting has one of the values it can take.

    Raises:
        ConfigError: naming the setting, what it can be and what it is.
    """
    for name, known in choices.items():
        if (value := getattr(settings, name)) not in (known := tuple(known)):
            raise ConfigError(f"{name} must be one of {', '.join(map(str, known))}, got {value!r}")


def at_least(settings: object, minimum: float, names: Iterable[str]) -> None:
    """Check that each named setting is at least ``minimum``.

    Raises:
        ConfigError: naming the setting and its value.
    """
    for name in names:
        if (value := getattr(settings, name)) < minimum:
            raise ConfigError(f"{name} must be at least {minimum:g}, got {value}")
