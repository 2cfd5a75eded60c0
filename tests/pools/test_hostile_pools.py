"""Pools whose author is hostile: every one is refused, or read as far as it can be, and never an error of our own."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import pytest

from spade_envs.pools.candidate import PoolError
from spade_envs.pools.card import Card, read_card
from spade_envs.pools.published import open_pool

SOURCE = "class AEnv(TextEnv):\n    pass\n"


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "a\0b.py", "a" * 100_000, "\ud800.py"])
def test_names_lead_nowhere(tmp_path: Path, name: str) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps({"games": [{"path": name}]}))
    assert [bool(candidate.problem) for candidate in open_pool(tmp_path)] == [True]


def test_links_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text(SOURCE)
    pool = tmp_path / "pool"
    pool.mkdir()
    (pool / "a.py").write_text(SOURCE)
    os.symlink(outside, pool / "b.py")
    assert [candidate.label for candidate in open_pool(pool)] == ["a.py"]


def test_numbers_beyond_floats_are_none(tmp_path: Path) -> None:
    entry = {"code": SOURCE, "n_plays": 10**400, "solve_rate": 1}
    (tmp_path / "manifest.json").write_text(json.dumps({"games": [entry]}))
    (candidate,) = open_pool(tmp_path)
    assert candidate.fields["statistics"].plain_plays == 0


def test_nesting_is_refused(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("[" * 100_000)
    with pytest.raises(PoolError, match="expected JSON"):
        open_pool(tmp_path)


@pytest.mark.parametrize("licence", ["2020-99-99", "[" * 5_000, "&a [*a]", "{a: 1}", "1" + "0" * 5_000])
def test_headers_of_cards(tmp_path: Path, licence: str) -> None:
    (tmp_path / "README.md").write_text(f"---\nlicense: {licence}\n---\n")
    assert read_card(tmp_path / "README.md") == Card()


def test_archives_that_grow_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.spade"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("environments.parquet", bytes(80 << 20))
    with pytest.raises(PoolError, match="would grow"):
        list(open_pool(path))


@pytest.mark.parametrize("row", [{"id": 1}, {"id": None, "code": None}, {"id": "a", "code": 5}])
def test_rows_of_a_forged_export(tmp_path: Path, row: dict[str, object]) -> None:
    import pyarrow
    import pyarrow.parquet

    made = pyarrow.Table.from_pylist([row]).replace_schema_metadata({b"spade_envs": b"spade-envs 1"})
    pyarrow.parquet.write_table(made, tmp_path / "environments.parquet")
    (candidate,) = open_pool(tmp_path)
    assert "the row" in candidate.problem
