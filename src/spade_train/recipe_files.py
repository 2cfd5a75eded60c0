"""Recipes as files: YAML mappings of settings, one of which may build on another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from spade_train.settings.base import ConfigError

BASE = "base"
"""The key under which a recipe names the one it builds on, relative to its own folder."""


def read_recipe(path: str | Path) -> dict[str, Any]:
    """Return the settings of a recipe, with those of the recipes that it builds on where it says nothing else.

    ``output_dir`` is not handed down: a recipe without one trains in ``runs/<name of the recipe>``.

    Raises:
        ConfigError: if a file is missing or no mapping, or recipes build on each other in a circle.
    """
    values: dict[str, Any] = {}
    for file in reversed(recipe_chain(path)):
        settings = _read(file)
        settings.pop(BASE, None)
        values.pop("output_dir", None)
        values |= settings
    values.setdefault("output_dir", f"runs/{Path(path).stem}")
    return values


def recipe_chain(path: str | Path) -> list[Path]:
    """Return a recipe and those that it builds on, itself first.

    Raises:
        ConfigError: see :func:`read_recipe`.
    """
    chain = [Path(path)]
    while (base := _read(chain[-1]).get(BASE)) is not None:
        if not isinstance(base, str):
            raise ConfigError(f"recipe {chain[-1]}: base must name another recipe, got {base!r}")
        following = chain[-1].parent / base
        if not following.suffix:
            following = following.with_suffix(".yaml")
        if following.resolve() in [file.resolve() for file in chain]:
            circle = " → ".join(file.name for file in [*chain, following])
            raise ConfigError(f"recipe {path}: recipes build on each other in a circle: {circle}")
        if not following.is_file():
            raise ConfigError(f"recipe {chain[-1]}: its base {following} does not exist")
        chain.append(following)
    return chain


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise ConfigError(f"recipe {path} does not exist; examples/recipes holds some to start from")
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"recipe {path}: {error}") from error
    if not isinstance(values, dict):
        raise ConfigError(f"recipe {path} must be a mapping of settings, got {type(values).__name__}")
    return values
