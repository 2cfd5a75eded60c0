"""Imports follow the road of the data: each part knows only those before it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import spade_envs

ROOT = Path(spade_envs.__file__).parent
ORDER = (
    *(
        "terminal",
        "hub_access",
        "tool_schema",
        "contract",
        "verify",
        "answers",
        "returns",
        "laps",
        "record",
        "sandbox",
        "source_text",
    ),
    *("models", "validation", "batching", "memory", "spaces", "corpus", "contamination", "tool_calls", "episode"),
    *("stepping", "page"),
    *("env", "vector", "registration", "designer", "play", "streaming", "players", "calibration", "pools", "cluster"),
    *("view", "cli"),
)


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_every_part_has_its_place() -> None:
    modules = {path.stem for path in ROOT.glob("*.py")} - {"__init__"}
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert modules | packages == set(ORDER)


def test_no_part_imports_a_later_one() -> None:
    upward = []
    for path in ROOT.rglob("*.py"):
        part = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if part == "__init__":  # the package's face names parts lazily
            continue
        for module in _imports(path):
            names = module.split(".")
            if names[0] == "spade_train":
                upward.append(f"{path.relative_to(ROOT)}: {module}")
            if names[0] == "spade_envs" and len(names) > 1 and ORDER.index(names[1]) > ORDER.index(part):
                upward.append(f"{path.relative_to(ROOT)}: {module}")
    assert not upward
