"""The code blocks of docs/memory.md run, in order, in an empty folder."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

_PAGE = Path(__file__).parents[2] / "docs" / "memory.md"


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", _PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 4
    namespace: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(_PAGE), "exec"), namespace)
    output = capsys.readouterr().out
    assert "0.25 0.5" in output
    assert "overlap=1.0" in output
    assert "Salvaged(records=1, without_statistics=0, lost=0)" in output
    backup = sqlite3.connect("backup.sqlite")
    assert backup.execute("SELECT COUNT(*) FROM records").fetchone() == (1,)
    backup.close()
