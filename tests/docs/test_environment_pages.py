"""The pages of the example environments say what their programs say and do now."""

from __future__ import annotations

import runpy
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_pages_are_those_that_the_script_writes() -> None:
    written = runpy.run_path(str(DOCS / "environment_pages.py"))["pages"]()
    found = {path.name: path.read_text(encoding="utf-8") for path in (DOCS / "environments").glob("*.md")}
    assert sorted(found) == sorted(written)
    assert len(found) == 14
    for name, text in written.items():
        assert found[name] == text, f"docs/environments/{name} is out of date: python docs/environment_pages.py"
