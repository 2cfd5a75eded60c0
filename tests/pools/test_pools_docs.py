"""What docs/pools.md shows, runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pool_programs import program

from spade_envs.cli import pools

_PAGE = (Path(__file__).parents[2] / "docs" / "pools.md").read_text(encoding="utf-8")


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pool").mkdir()
    (tmp_path / "pool" / "a.py").write_text(program(2))
    (tmp_path / "pool" / "b.py").write_text("import os\nclass BadEnv:\n    pass\n")
    (block,) = re.findall(r"```python\n(.*?)```", _PAGE, re.DOTALL)
    exec(compile(block, "docs/pools.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "admitted a.py "
    assert lines[1].startswith("refused b.py policy:")
    assert lines[2:] == ["1", "{'admitted'}"]


def test_the_options_that_the_page_names_are_there() -> None:
    source = Path(pools.__file__).read_text(encoding="utf-8")
    shared = {"--json", "--memory"}
    for option in set(re.findall(r"--[a-z][a-z-]+", _PAGE)) - shared:
        name = option.removeprefix("--").replace("-", "_")
        assert f'"{option}"' in source or re.search(rf"^    {name}: ", source, re.MULTILINE), option
